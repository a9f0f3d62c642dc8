package dev.millrace.checkpoint;

import java.util.List;

/** One tensor of a safetensors file: bytes [begin, end) of the data that follows the header. */
public record TensorInfo(String name, DType dtype, List<Long> shape, long begin, long end) {
  public TensorInfo {
    shape = List.copyOf(shape);
  }

  public long bytes() {
    return end - begin;
  }

  /** {@code F32 [2, 3]}. */
  public String form() {
    return dtype + " " + shape;
  }

  /** The element types that the core uses, in safetensors spelling. */
  public enum DType {
    F32(4),
    F64(8),
    I32(4),
    I64(8),
    U64(8);

    private final int bytes;

    DType(int bytes) {
      this.bytes = bytes;
    }

    public int bytes() {
      return bytes;
    }

    /** Throws {@link CheckpointException} for anything else. */
    static DType of(String name) {
      for (DType dtype : values()) {
        if (dtype.name().equals(name)) {
          return dtype;
        }
      }
      throw new CheckpointException("unknown dtype \"" + name + "\"");
    }
  }

  /**
   * Elements times their size; throws {@link CheckpointException} if that is no sensible number.
   */
  static long bytes(DType dtype, List<Long> shape) {
    long bytes = dtype.bytes();
    try {
      for (long size : shape) {
        if (size < 0) {
          throw new CheckpointException("negative size in " + shape);
        }
        bytes = Math.multiplyExact(bytes, size);
      }
    } catch (ArithmeticException e) {
      throw new CheckpointException("impossible shape " + shape, e);
    }
    return bytes;
  }
}

package dev.millrace.checkpoint;

import dev.millrace.checkpoint.TensorInfo.DType;
import dev.millrace.core.Engine.Tensor;
import dev.millrace.io.FileErrors;
import dev.millrace.io.FileOps;
import dev.millrace.io.Sha256;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;

/** Streams tensors into a safetensors file and hashes them on the way. */
final class SafetensorsWriter {
  private SafetensorsWriter() {}

  /** Where the bytes of a tensor come from. */
  interface Source {
    /** Fills the buffer with the tensor's bytes from {@code offset} on. */
    void read(int tensor, long offset, ByteBuffer target);
  }

  /** What a reader can check a file against. */
  record Written(long bytes, String sha256) {}

  /**
   * Writes a new file and returns when it is on the disk.
   *
   * @param chunk a direct buffer that the tensors pass through
   */
  static Written write(
      FileOps ops, Path file, List<Tensor> tensors, Source source, ByteBuffer chunk)
      throws IOException {
    MessageDigest digest = Sha256.digest();
    try (FileChannel channel = ops.create(file)) {
      ByteBuffer header = SafetensorsHeader.encode(placed(tensors));
      digest.update(header.duplicate());
      ops.write(channel, header);
      for (Tensor tensor : tensors) {
        for (long at = 0; at < tensor.bytes(); at += chunk.limit()) {
          chunk.clear().limit((int) Math.min(chunk.capacity(), tensor.bytes() - at));
          source.read(tensor.index(), at, chunk.slice());
          digest.update(chunk.duplicate());
          ops.write(channel, chunk.duplicate());
        }
      }
      ops.sync(channel);
      return new Written(channel.size(), Sha256.hex(digest));
    } catch (IOException e) {
      throw FileErrors.cannot("write", file, e);
    }
  }

  private static List<TensorInfo> placed(List<Tensor> tensors) {
    List<TensorInfo> placed = new ArrayList<>();
    long at = 0;
    for (Tensor tensor : tensors) {
      DType dtype = DType.of(tensor.dtype());
      if (TensorInfo.bytes(dtype, tensor.shape()) != tensor.bytes()) {
        throw new IllegalStateException("tensor " + tensor + " has a size that does not fit");
      }
      placed.add(new TensorInfo(tensor.name(), dtype, tensor.shape(), at, at + tensor.bytes()));
      at += tensor.bytes();
    }
    return placed;
  }
}

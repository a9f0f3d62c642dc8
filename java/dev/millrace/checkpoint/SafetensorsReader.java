package dev.millrace.checkpoint;

import dev.millrace.io.FileErrors;
import dev.millrace.io.Sha256;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A safetensors file, opened once: what was checked is what is read, whatever happens to the path
 * in the meantime.
 */
public final class SafetensorsReader implements AutoCloseable {
  private final Path file;
  private final FileChannel channel;
  private final long dataStart;
  private final Map<String, TensorInfo> tensors = new LinkedHashMap<>();

  private SafetensorsReader(Path file, FileChannel channel) throws IOException {
    this.file = file;
    this.channel = channel;
    long size = channel.size();
    ByteBuffer length =
        ByteBuffer.allocate(SafetensorsHeader.LENGTH_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    if (size < length.capacity()) {
      throw new CheckpointException("the file has only " + size + " bytes");
    }
    read(length, 0);
    long header = length.getLong(0);
    if (header < 2 || header > SafetensorsHeader.LIMIT_BYTES) {
      throw new CheckpointException("impossible header length " + header);
    }
    dataStart = SafetensorsHeader.LENGTH_BYTES + header;
    if (dataStart > size) {
      throw new CheckpointException("the header is cut off");
    }
    ByteBuffer json = ByteBuffer.allocate((int) header);
    read(json, SafetensorsHeader.LENGTH_BYTES);
    for (TensorInfo tensor : SafetensorsHeader.decode(json.array(), size - dataStart)) {
      tensors.put(tensor.name(), tensor);
    }
  }

  /** Throws {@link CheckpointException} naming the file. */
  public static SafetensorsReader open(Path file) {
    FileChannel channel = null;
    try {
      channel = FileChannel.open(file, StandardOpenOption.READ);
      return new SafetensorsReader(file, channel);
    } catch (CheckpointException | IOException e) {
      close(channel);
      String reason = e instanceof IOException io ? FileErrors.reason(io) : e.getMessage();
      throw new CheckpointException(file + ": " + reason, e);
    }
  }

  /** By name, in the order of the data. */
  public Map<String, TensorInfo> tensors() {
    return tensors;
  }

  /** SHA-256 and size of the open file must be these. */
  void verify(long bytes, String sha256) {
    try {
      if (channel.size() != bytes) {
        throw new CheckpointException(file + ": " + channel.size() + " bytes instead of " + bytes);
      }
      if (!Sha256.of(channel).equals(sha256)) {
        throw new CheckpointException(file + ": damaged (SHA-256 differs)");
      }
    } catch (IOException e) {
      throw new CheckpointException(file + ": " + FileErrors.reason(e), e);
    }
  }

  /** Fills the buffer with a tensor's bytes from {@code offset} on. */
  public void read(TensorInfo tensor, long offset, ByteBuffer target) {
    try {
      read(target, dataStart + tensor.begin() + offset);
    } catch (IOException e) {
      throw new CheckpointException(file + ": " + FileErrors.reason(e), e);
    }
  }

  private void read(ByteBuffer target, long position) throws IOException {
    long at = position;
    while (target.hasRemaining()) {
      int count = channel.read(target, at);
      if (count < 0) {
        throw new CheckpointException(file + ": the file became shorter while it was read");
      }
      at += count;
    }
  }

  @Override
  public void close() {
    close(channel);
  }

  private static void close(FileChannel channel) {
    try {
      if (channel != null) {
        channel.close();
      }
    } catch (IOException e) {
      throw new CheckpointException("cannot close: " + e.getMessage(), e);
    }
  }
}

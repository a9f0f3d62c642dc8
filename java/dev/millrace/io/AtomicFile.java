package dev.millrace.io;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

/** Writes a whole file so that a reader, or a kill, sees the old one or the new one only. */
public final class AtomicFile {
  private AtomicFile() {}

  /** Temporary file beside the target, fsync, rename, fsync of the folder. */
  public static void write(FileOps ops, Path target, byte[] bytes) throws IOException {
    Path folder = target.toAbsolutePath().getParent();
    Path temporary = folder.resolve("." + target.getFileName() + ".partial");
    try {
      ops.delete(temporary);
      try (FileChannel channel = ops.create(temporary)) {
        ops.write(channel, ByteBuffer.wrap(bytes));
        ops.sync(channel);
      }
      ops.rename(temporary, target);
      ops.syncFolder(folder);
    } catch (IOException e) {
      ops.makeRoom(temporary, e);
      throw FileErrors.cannot("write", target, e);
    }
  }
}

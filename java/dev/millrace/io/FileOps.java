package dev.millrace.io;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * The file operations that durability depends on. They stand behind an interface so that a test can
 * stop the process, so to speak, before any one of them.
 */
public interface FileOps {
  /** The operating system. */
  FileOps SYSTEM = new FileOps() {};

  default void createFolder(Path folder) throws IOException {
    Files.createDirectories(folder);
  }

  /** Opens a file that must not exist yet. */
  default FileChannel create(Path file) throws IOException {
    return FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
  }

  /** Writes all that remains in the buffer. */
  default void write(FileChannel channel, ByteBuffer buffer) throws IOException {
    while (buffer.hasRemaining()) {
      channel.write(buffer);
    }
  }

  /** Returns when the file's content is on the disk. */
  default void sync(FileChannel channel) throws IOException {
    channel.force(true);
  }

  /** Returns when the folder's entries are on the disk: without it a rename can be lost. */
  default void syncFolder(Path folder) throws IOException {
    try (FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ)) {
      channel.force(true);
    }
  }

  /** Replaces {@code to} in one step. */
  default void rename(Path from, Path to) throws IOException {
    Files.move(from, to, StandardCopyOption.ATOMIC_MOVE);
  }

  /** Deletes what a write that failed has left: it would keep a full disk full. */
  default void makeRoom(Path unfinished, IOException failure) {
    try {
      delete(unfinished);
    } catch (IOException e) {
      failure.addSuppressed(e);
    }
  }

  /** Deletes a file, or a folder with all that it holds; what is not there is fine. */
  default void delete(Path path) throws IOException {
    if (!Files.exists(path)) {
      return;
    }
    List<Path> deepestFirst;
    try (Stream<Path> tree = Files.walk(path)) {
      deepestFirst = tree.sorted(Comparator.reverseOrder()).toList();
    }
    for (Path each : deepestFirst) {
      Files.deleteIfExists(each);
    }
  }
}

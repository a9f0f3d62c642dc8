package dev.millrace.run;

import dev.millrace.io.FileErrors;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * That this process trains in a run directory, and no other. The system forgets it with the
 * process, so that a kill leaves a file that means nothing.
 */
public final class RunLock implements AutoCloseable {
  private static final String NAME = ".lock";

  private final FileChannel channel;

  private RunLock(FileChannel channel) {
    this.channel = channel;
  }

  static Path file(Path directory) {
    return directory.resolve(NAME);
  }

  /** Throws {@link BadInputException} where another process, or this one, trains there. */
  static RunLock of(Path directory) {
    Path file = file(directory);
    try {
      FileChannel channel =
          FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
      if (!isTaken(channel)) {
        return new RunLock(channel);
      }
      channel.close();
    } catch (IOException e) {
      throw new BadInputException("cannot lock " + file + ": " + FileErrors.reason(e));
    }
    throw new BadInputException(directory + ": another process trains in this run directory");
  }

  private static boolean isTaken(FileChannel channel) throws IOException {
    try {
      FileLock lock = channel.tryLock();
      return lock == null;
    } catch (OverlappingFileLockException e) {
      return true;
    }
  }

  /** The file stays: who has opened one that is deleted would lock another than who comes later. */
  @Override
  public void close() {
    try {
      channel.close();
    } catch (IOException e) {
      // The lock ends with the process at the latest.
    }
  }
}

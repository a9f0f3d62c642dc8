package dev.millrace.progress;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** Whether a standard stream of this process is a terminal. */
final class Terminal {
  private Terminal() {}

  /** Asks the kernel: {@code System.console()} answers for standard input, too. */
  static boolean is(PrintStream out) {
    int descriptor = out == System.out ? 1 : 2;
    Path link = Path.of("/proc/self/fd/" + descriptor);
    if (!Files.isSymbolicLink(link)) {
      return false; // no such files on this system: plain lines are never wrong
    }
    try {
      String target = Files.readSymbolicLink(link).toString();
      return target.startsWith("/dev/pts/") || target.startsWith("/dev/tty");
    } catch (IOException e) {
      return false;
    }
  }
}

package dev.millrace.progress;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** Whether a standard stream of this process is a terminal. */
final class Terminal {
  private Terminal() {}

  /**
   * As /proc says it; where there is none, lines are safer. {@code System.console()} asks about
   * standard input, too, and differs between JDKs.
   */
  static boolean is(PrintStream out) {
    int descriptor = out == System.out ? 1 : 2;
    Path link = Path.of("/proc/self/fd/" + descriptor);
    try {
      String target = Files.readSymbolicLink(link).toString();
      return target.startsWith("/dev/pts/") || target.startsWith("/dev/tty");
    } catch (IOException e) {
      return false;
    }
  }
}

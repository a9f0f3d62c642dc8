package dev.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.core.Core;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;

/** Runs command lines on a core of a test's own, in a folder of its own. */
abstract class CommandLineTest<Tested extends Core> {
  @TempDir Path folder;
  final Tested core;
  String out = "";
  String err = "";

  CommandLineTest(Tested core) {
    this.core = core;
  }

  int run(String... args) {
    ByteArrayOutputStream outBytes = new ByteArrayOutputStream();
    ByteArrayOutputStream errBytes = new ByteArrayOutputStream();
    int code =
        Main.run(
            args,
            () -> core,
            new PrintStream(outBytes, true, StandardCharsets.UTF_8),
            new PrintStream(errBytes, true, StandardCharsets.UTF_8));
    out = outBytes.toString(StandardCharsets.UTF_8);
    err = errBytes.toString(StandardCharsets.UTF_8);
    return code;
  }

  void assertOneLine(int expected, String part, String... args) {
    int code = run(args);
    assertEquals(1, err.lines().count(), err);
    assertTrue(err.contains(part), err);
    assertEquals(expected, code);
  }

  String path(String name) {
    return folder.resolve(name).toString();
  }
}

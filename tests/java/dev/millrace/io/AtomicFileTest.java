package dev.millrace.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AtomicFileTest {
  @TempDir Path folder;

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  @Test
  void aFileIsReplacedAsAWhole() throws IOException {
    Path file = folder.resolve("f");
    AtomicFile.write(FileOps.SYSTEM, file, bytes("one"));
    AtomicFile.write(FileOps.SYSTEM, file, bytes("two"));
    assertEquals("two", Files.readString(file));
    FileOps noRename =
        new FileOps() {
          @Override
          public void rename(Path from, Path to) throws IOException {
            throw new IOException("dead");
          }
        };
    IOException e =
        assertThrows(IOException.class, () -> AtomicFile.write(noRename, file, bytes("three")));
    assertEquals("cannot write " + file + ": dead", e.getMessage());
    assertEquals("two", Files.readString(file));
    try (var entries = Files.list(folder)) {
      assertEquals(1, entries.count());
    }
    AtomicFile.write(FileOps.SYSTEM, file, bytes("four"));
    assertEquals("four", Files.readString(file));
    try (var entries = Files.list(folder)) {
      assertEquals(1, entries.count());
    }
  }

  @Test
  void hashesAreThoseOfTheStandard() throws IOException {
    String abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assertEquals(abc, Sha256.of(bytes("abc")));
    Path file = folder.resolve("abc");
    Files.writeString(file, "abc");
    assertEquals(abc, Sha256.of(file));
  }
}

package dev.millrace.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.config.YamlNode.Kind;
import dev.millrace.config.YamlNode.Mapping;
import dev.millrace.config.YamlNode.Scalar;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class YamlReaderTest {
  private static Mapping read(String text) {
    Mistakes mistakes = new Mistakes();
    Mapping read = YamlReader.mapping("t.yaml", text.getBytes(StandardCharsets.UTF_8), mistakes);
    mistakes.refuse();
    return read;
  }

  private static String error(String text) {
    String message = assertThrows(ConfigException.class, () -> read(text)).getMessage();
    assertEquals(1, message.lines().count(), message);
    return message;
  }

  @Test
  void coreSchemaDecidesKinds() {
    Mapping root =
        read("a: 1e-4\nb: 1e-4x\nc: no\nd: true\ne: 012\nf: ~\ng: \"1\"\nh: .5\ni: 1e3\n");
    Kind[] kinds = {
      Kind.NUMBER,
      Kind.TEXT,
      Kind.TEXT,
      Kind.BOOLEAN,
      Kind.INTEGER,
      Kind.NULL,
      Kind.TEXT,
      Kind.NUMBER,
      Kind.NUMBER
    };
    int i = 0;
    for (YamlNode node : root.entries().values()) {
      assertEquals(kinds[i++], ((Scalar) node).kind(), node.toString());
    }
  }

  @Test
  void aDuplicateKeyIsNamedWithItsPlace() {
    assertEquals("t.yaml:3:3: duplicate key \"b\"", error("a:\n  b: 1\n  b: 2\n"));
  }

  @Test
  void deepNestingIsRefusedWithoutOverflow() {
    Assertions.assertTimeout(
        Duration.ofSeconds(5),
        () -> {
          assertTrue(error("[".repeat(100_000)).contains("nested deeper than 64"));
          assertTrue(error("{a: ".repeat(60_000)).contains("nested deeper than 64"));
          assertTrue(error("- ".repeat(100_000)).contains("nested deeper than 64"));
        });
    read("a: " + "[".repeat(60) + "]".repeat(60));
  }

  @Test
  void aliasesAreCountedAsWhatTheyStandFor() {
    StringBuilder bomb = new StringBuilder("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 9; i++) {
      String alias = "*a" + (i - 1);
      String list = String.join(", ", java.util.Collections.nCopies(9, alias));
      bomb.append("a" + i + ": &a" + i + " [" + list + "]\n");
    }
    assertTrue(error(bomb.toString()).contains("more than 20000 values"));
    assertEquals(5, read("a: &x [1]\nb: *x\n").size());
    assertTrue(error("a: &x [*x]\n").contains("unknown alias *x"));
  }

  @Test
  void aByteOrderMarkIsFineAndTabsAreNot() {
    assertEquals(1, read("\uFEFFa: 1\n").entries().size());
    assertTrue(error("a:\n\tb: 1\n").startsWith("t.yaml:2:1: "));
  }

  @Test
  void oneMappingIsExpected() {
    assertTrue(error("- 1\n").contains("expected keys and values"));
    assertTrue(error("a: 1\n---\nb: 2\n").contains("more than one document"));
    assertTrue(error("a: !!java.lang.Runtime {}\n").contains("tags"));
    assertTrue(error("? [1]\n: 2\n").contains("a key must be a plain word"));
    assertTrue(error("a: [1, 2\n").startsWith("t.yaml:2:1: "));
    assertEquals(0, read("").entries().size());
    assertEquals(0, read("# nothing\n").entries().size());
  }

  @Test
  void sizeIsLimited() {
    String large = "a: " + "x".repeat(YamlReader.BYTE_LIMIT);
    assertEquals("t.yaml: larger than 262144 bytes", error(large));
  }

  @Test
  void filesThatCannotBeReadAreNamed(@TempDir Path folder) throws Exception {
    Path missing = folder.resolve("none.yaml");
    ConfigException e =
        assertThrows(ConfigException.class, () -> YamlReader.read(missing, new Mistakes()));
    assertEquals("cannot read " + missing + ": no such file or folder", e.getMessage());
    e = assertThrows(ConfigException.class, () -> YamlReader.read(folder, new Mistakes()));
    assertEquals("cannot read " + folder + ": it is a folder", e.getMessage());
    Path binary = folder.resolve("binary.yaml");
    Files.write(binary, new byte[] {'a', ':', ' ', (byte) 0xff, (byte) 0xfe, 0});
    e = assertThrows(ConfigException.class, () -> YamlReader.read(binary, new Mistakes()));
    assertEquals(binary + ": is not UTF-8 text", e.getMessage());
  }
}

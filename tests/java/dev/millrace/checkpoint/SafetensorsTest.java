package dev.millrace.checkpoint;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.core.Engine.Tensor;
import dev.millrace.io.FileOps;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SafetensorsTest {
  @TempDir Path folder;

  private Path write(FakeEngine engine, int chunkBytes) throws IOException {
    Path file = folder.resolve("state.safetensors");
    Files.deleteIfExists(file);
    ByteBuffer chunk = ByteBuffer.allocateDirect(chunkBytes);
    var written =
        SafetensorsWriter.write(FileOps.SYSTEM, file, engine.tensors(), engine::read, chunk);
    assertEquals(Files.size(file), written.bytes());
    assertEquals(dev.millrace.io.Sha256.of(file), written.sha256());
    return file;
  }

  private static byte[] content(SafetensorsReader reader, TensorInfo tensor) {
    ByteBuffer buffer = ByteBuffer.allocate((int) tensor.bytes());
    reader.read(tensor, 0, buffer);
    return buffer.array();
  }

  private static void assertHolds(Path file, FakeEngine engine) {
    try (SafetensorsReader reader = SafetensorsReader.open(file)) {
      assertEquals(engine.tensors().size(), reader.tensors().size());
      for (Tensor tensor : engine.tensors()) {
        TensorInfo stored = reader.tensors().get(tensor.name());
        assertEquals(tensor.dtype() + " " + tensor.shape(), stored.form());
        assertArrayEquals(engine.state().get(tensor.name()), content(reader, stored));
      }
    }
  }

  @Test
  void whatIsWrittenIsReadBackWhateverTheChunk() throws IOException {
    for (int chunkBytes : new int[] {1, 7, 24, 1 << 16}) {
      FakeEngine engine = new FakeEngine(chunkBytes);
      assertHolds(write(engine, chunkBytes), engine);
    }
  }

  @Test
  void dataStartsAtAMultipleOfEight() throws IOException {
    byte[] bytes = Files.readAllBytes(write(new FakeEngine(1), 64));
    long header = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getLong();
    assertEquals(0, header % 8);
    assertEquals('{', bytes[8]);
  }

  @Test
  void mutantsAreRefusedOrAreStillConsistent() throws IOException {
    FakeEngine engine = new FakeEngine(3);
    byte[] good = Files.readAllBytes(write(engine, 64));
    int headerEnd = (int) ByteBuffer.wrap(good).order(ByteOrder.LITTLE_ENDIAN).getLong() + 8;
    Random random = new Random(20261129);
    Path file = folder.resolve("mutant");
    int refused = 0;
    for (int i = 0; i < 1000; i++) {
      Files.write(file, mutate(good, headerEnd, random));
      try (SafetensorsReader reader = SafetensorsReader.open(file)) {
        // The bytes differ somewhere, but what was accepted covers the data exactly.
        long total = 0;
        for (TensorInfo tensor : reader.tensors().values()) {
          total += content(reader, tensor).length;
        }
        assertTrue(total <= Files.size(file));
      } catch (CheckpointException e) {
        assertTrue(e.getMessage().startsWith(file + ": "), e.getMessage());
        assertEquals(1, e.getMessage().lines().count(), e.getMessage());
        refused++;
      }
    }
    assertTrue(refused > 500, "refused " + refused);
  }

  private static byte[] mutate(byte[] good, int headerEnd, Random random) {
    byte[] bad = good.clone();
    switch (random.nextInt(4)) {
      case 0 -> bad = java.util.Arrays.copyOf(bad, random.nextInt(bad.length));
      case 1 -> bad = java.util.Arrays.copyOf(bad, bad.length + 1 + random.nextInt(9));
      case 2 -> bad[random.nextInt(8)] = (byte) random.nextInt();
      default -> {
        for (int k = 0; k <= random.nextInt(3); k++) {
          bad[8 + random.nextInt(headerEnd - 8)] = (byte) random.nextInt();
        }
      }
    }
    return bad;
  }

  private String error(String header, int dataBytes) throws IOException {
    byte[] json = header.getBytes(StandardCharsets.UTF_8);
    ByteBuffer all =
        ByteBuffer.allocate(8 + json.length + dataBytes).order(ByteOrder.LITTLE_ENDIAN);
    all.putLong(json.length).put(json);
    Path file = folder.resolve("made");
    Files.write(file, all.array());
    return assertThrows(CheckpointException.class, () -> SafetensorsReader.open(file).close())
        .getMessage();
  }

  private static String tensor(String name, String dtype, String shape, long begin, long end) {
    return String.format(
        "\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%d,%d]}",
        name, dtype, shape, begin, end);
  }

  @Test
  void everyInconsistencyHasItsOwnReason() throws IOException {
    String a = tensor("a", "F32", "[2]", 0, 8);
    assertTrue(error("{" + a + "," + tensor("b", "F32", "[1]", 4, 8) + "}", 8).contains("overlap"));
    assertTrue(error("{" + a + "," + tensor("b", "F32", "[1]", 12, 16) + "}", 16).contains("gap"));
    assertTrue(error("{" + a + "}", 12).contains("the tensors take 8 bytes, the file has 12"));
    assertTrue(error("{" + tensor("a", "F16", "[4]", 0, 8) + "}", 8).contains("unknown dtype"));
    assertTrue(error("{" + tensor("a", "F32", "[3]", 0, 8) + "}", 8).contains("do not fit"));
    assertTrue(error("{" + tensor("a", "F32", "[-2]", 0, 8) + "}", 8).contains("whole number"));
    String huge = "[" + Long.MAX_VALUE + ",9]";
    assertTrue(error("{" + tensor("a", "F32", huge, 0, 8) + "}", 8).contains("impossible shape"));
    assertTrue(error("{" + a + "," + a + "}", 8).contains("damaged"));
    assertTrue(error("[" + "[".repeat(10_000), 0).contains("not a JSON object"));
    assertTrue(error("{\"a\":" + "[".repeat(10_000), 0).contains("damaged"));
    assertTrue(error("{\"a\":1}", 0).contains("expected dtype"));
  }

  @Test
  void anImpossibleHeaderLengthAllocatesNothing() throws IOException {
    Path file = folder.resolve("length");
    for (long length : new long[] {Long.MAX_VALUE, -1, 100_000_001, 99_999_999}) {
      ByteBuffer bytes = ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).putLong(length);
      Files.write(file, bytes.array());
      assertThrows(CheckpointException.class, () -> SafetensorsReader.open(file).close());
    }
  }
}

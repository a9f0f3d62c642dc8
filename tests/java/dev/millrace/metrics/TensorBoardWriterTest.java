package dev.millrace.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TensorBoardWriterTest {
  @TempDir Path folder;

  @Test
  void anIndependentReaderFindsEveryScalar() throws IOException {
    Map<String, Double> values = new LinkedHashMap<>();
    values.put("loss/critic", 0.25);
    values.put("absent", Double.NaN);
    values.put("episode/return_mean", -3.5);
    try (TensorBoardWriter writer = TensorBoardWriter.create(folder, 1)) {
      writer.scalars(300, values);
      writer.scalars(1L << 40, Map.of("x", 1.0));
    }
    List<String> events = readAll(onlyFile());
    assertEquals(4, events.size());
    assertEquals("step=0 version=brain.Event:2", events.get(0));
    assertEquals("step=1 session_start", events.get(1));
    assertEquals("step=300 loss/critic=0.25 episode/return_mean=-3.5", events.get(2));
    assertEquals("step=1099511627776 x=1.0", events.get(3));
  }

  @Test
  void everyWriterHasAFileOfItsOwn() throws IOException {
    TensorBoardWriter.create(folder, 1).close();
    TensorBoardWriter.create(folder, 51).close();
    try (var files = Files.list(folder)) {
      assertEquals(2, files.count());
    }
  }

  @Test
  void theChecksumIsCastagnoli() {
    assertEquals(0xe3069283L, crc32c("123456789".getBytes(StandardCharsets.US_ASCII)));
    assertNotEquals(crc32c(new byte[] {1}), crc32c(new byte[] {2}));
  }

  private Path onlyFile() throws IOException {
    try (var files = Files.list(folder)) {
      List<Path> all = files.toList();
      assertEquals(1, all.size());
      return all.get(0);
    }
  }

  // A reader that shares nothing with the writer: bitwise CRC, own protobuf walk.

  private static long crc32c(byte[] data) {
    long crc = 0xffffffffL;
    for (byte each : data) {
      crc ^= each & 0xff;
      for (int bit = 0; bit < 8; bit++) {
        crc = (crc & 1) != 0 ? (crc >>> 1) ^ 0x82f63b78L : crc >>> 1;
      }
    }
    return crc ^ 0xffffffffL;
  }

  private static long masked(byte[] data) {
    long crc = crc32c(data);
    return (((crc >>> 15) | (crc << 17)) + 0xa282ead8L) & 0xffffffffL;
  }

  private static List<String> readAll(Path file) throws IOException {
    ByteBuffer in = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
    List<String> events = new ArrayList<>();
    while (in.hasRemaining()) {
      byte[] length = new byte[8];
      in.get(length);
      assertEquals(masked(length), in.getInt() & 0xffffffffL);
      byte[] data =
          new byte[(int) ByteBuffer.wrap(length).order(ByteOrder.LITTLE_ENDIAN).getLong()];
      in.get(data);
      assertEquals(masked(data), in.getInt() & 0xffffffffL);
      events.add(event(data));
    }
    return events;
  }

  private static String event(byte[] data) {
    StringBuilder text = new StringBuilder();
    for (Field field : fields(data)) {
      switch (field.number) {
        case 1 -> assertEquals(1.7e9, Double.longBitsToDouble(field.value), 1e9);
        case 2 -> text.append("step=").append(field.value);
        case 3 -> text.append(" version=").append(new String(field.bytes, StandardCharsets.UTF_8));
        case 5 -> fields(field.bytes).forEach(value -> text.append(scalar(value.bytes)));
        case 7 -> text.append(fields(field.bytes).get(0).value == 1 ? " session_start" : " ?");
        default -> text.append(" unexpected field ").append(field.number);
      }
    }
    return text.toString();
  }

  private static String scalar(byte[] data) {
    List<Field> fields = fields(data);
    String tag = new String(fields.get(0).bytes, StandardCharsets.UTF_8);
    return " " + tag + "=" + Float.intBitsToFloat((int) fields.get(1).value);
  }

  private static final class Field {
    final int number;
    final long value;
    final byte[] bytes;

    Field(int number, long value, byte[] bytes) {
      this.number = number;
      this.value = value;
      this.bytes = bytes;
    }
  }

  private static List<Field> fields(byte[] data) {
    ByteBuffer in = ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
    List<Field> fields = new ArrayList<>();
    while (in.hasRemaining()) {
      int key = (int) varint(in);
      byte[] bytes = new byte[0];
      long value = 0;
      switch (key & 7) {
        case 0 -> value = varint(in);
        case 1 -> value = in.getLong();
        case 5 -> value = in.getInt();
        default -> {
          bytes = new byte[(int) varint(in)];
          in.get(bytes);
        }
      }
      fields.add(new Field(key >>> 3, value, bytes));
    }
    return fields;
  }

  private static long varint(ByteBuffer in) {
    long value = 0;
    int shift = 0;
    byte each;
    do {
      each = in.get();
      value |= (long) (each & 0x7f) << shift;
      shift += 7;
    } while (each < 0);
    return value;
  }
}

package dev.millrace.metrics;

import dev.millrace.io.FileErrors;
import dev.millrace.io.FileOps;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Map;
import java.util.zip.CRC32C;

/**
 * Scalars for TensorBoard: TFRecord frames (length, masked CRC of it, data, masked CRC of it) that
 * hold Event messages. The few message fields needed are encoded here by hand. Owned by the run's
 * thread.
 */
public final class TensorBoardWriter implements AutoCloseable {
  private static final int CRC_MASK = 0xa282ead8;

  // Field numbers of tensorflow.Event, Summary, Summary.Value and SessionLog.
  private static final int EVENT_WALL_TIME = 1;
  private static final int EVENT_STEP = 2;
  private static final int EVENT_FILE_VERSION = 3;
  private static final int EVENT_SUMMARY = 5;
  private static final int EVENT_SESSION_LOG = 7;
  private static final int SUMMARY_VALUE = 1;
  private static final int VALUE_TAG = 1;
  private static final int VALUE_SIMPLE = 2;
  private static final int SESSION_STATUS = 1;
  private static final int SESSION_START = 1;

  private static final int WIRE_VARINT = 0;
  private static final int WIRE_FIXED64 = 1;
  private static final int WIRE_BYTES = 2;
  private static final int WIRE_FIXED32 = 5;

  private final Path file;
  private final FileChannel channel;

  private TensorBoardWriter(Path file, FileChannel channel) {
    this.file = file;
    this.channel = channel;
  }

  /**
   * Starts a new events file in the folder; what older files say from {@code firstTick} on no
   * longer counts.
   */
  public static TensorBoardWriter create(Path folder, long firstTick) throws IOException {
    try {
      Files.createDirectories(folder);
    } catch (IOException e) {
      throw FileErrors.cannot("create", folder, e);
    }
    Instant now = Instant.now();
    Path file = folder.resolve("events.out.tfevents." + now.getEpochSecond() + ".millrace");
    for (int i = 1; Files.exists(file); i++) {
      file = folder.resolve("events.out.tfevents." + now.getEpochSecond() + ".millrace." + i);
    }
    try {
      TensorBoardWriter writer = new TensorBoardWriter(file, FileOps.SYSTEM.create(file));
      writer.event(now, 0, EVENT_FILE_VERSION, "brain.Event:2".getBytes(StandardCharsets.UTF_8));
      Message start = new Message().varint(SESSION_STATUS, SESSION_START);
      writer.event(now, firstTick, EVENT_SESSION_LOG, start.bytes());
      return writer;
    } catch (IOException e) {
      throw FileErrors.cannot("write", file, e);
    }
  }

  public void scalars(long tick, Map<String, Double> values) throws IOException {
    Message summary = new Message();
    values.forEach(
        (tag, value) -> {
          if (value != null && Double.isFinite(value)) {
            Message each = new Message();
            each.bytes(VALUE_TAG, tag.getBytes(StandardCharsets.UTF_8));
            each.fixed32(VALUE_SIMPLE, value.floatValue());
            summary.bytes(SUMMARY_VALUE, each.bytes());
          }
        });
    try {
      event(Instant.now(), tick, EVENT_SUMMARY, summary.bytes());
    } catch (IOException e) {
      throw FileErrors.cannot("write", file, e);
    }
  }

  private void event(Instant time, long step, int field, byte[] content) throws IOException {
    Message event = new Message();
    event.fixed64(EVENT_WALL_TIME, time.toEpochMilli() / 1000.0);
    event.varint(EVENT_STEP, step);
    event.bytes(field, content);
    FileOps.SYSTEM.write(channel, frame(event.bytes()));
  }

  private static ByteBuffer frame(byte[] data) {
    ByteBuffer frame = ByteBuffer.allocate(data.length + 16).order(ByteOrder.LITTLE_ENDIAN);
    frame.putLong(data.length);
    frame.putInt(maskedCrc(frame.array(), 8));
    frame.put(data);
    frame.putInt(maskedCrc(data, data.length));
    return frame.flip();
  }

  private static int maskedCrc(byte[] data, int length) {
    CRC32C crc = new CRC32C();
    crc.update(data, 0, length);
    return Integer.rotateRight((int) crc.getValue(), 15) + CRC_MASK;
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }

  /** A protocol buffer message under construction. */
  private static final class Message {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();

    Message varint(int field, long value) {
      raw(((long) field << 3) | WIRE_VARINT);
      raw(value);
      return this;
    }

    void fixed64(int field, double value) {
      raw(((long) field << 3) | WIRE_FIXED64);
      ByteBuffer buffer = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putDouble(value);
      out.writeBytes(buffer.array());
    }

    void fixed32(int field, float value) {
      raw(((long) field << 3) | WIRE_FIXED32);
      ByteBuffer buffer = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putFloat(value);
      out.writeBytes(buffer.array());
    }

    void bytes(int field, byte[] value) {
      raw(((long) field << 3) | WIRE_BYTES);
      raw(value.length);
      out.writeBytes(value);
    }

    byte[] bytes() {
      return out.toByteArray();
    }

    private void raw(long value) {
      long rest = value;
      while ((rest & ~0x7fL) != 0) {
        out.write((int) (rest & 0x7f) | 0x80);
        rest >>>= 7;
      }
      out.write((int) rest);
    }
  }
}

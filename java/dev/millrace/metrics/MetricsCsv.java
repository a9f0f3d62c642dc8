package dev.millrace.metrics;

import dev.millrace.io.AtomicFile;
import dev.millrace.io.FileErrors;
import dev.millrace.io.FileOps;
import dev.millrace.run.BadInputException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * metrics.csv: tick, env_steps and updates first, then one column for each metric in the order of
 * the first row. A metric that appears later gets a column of its own: the file is rewritten once.
 * A value that does not exist (yet) is an empty cell. Owned by the run's thread.
 */
public final class MetricsCsv implements AutoCloseable {
  private static final List<String> FIRST = List.of("tick", "env_steps", "updates");

  private final Path file;
  private final List<String> columns;
  private final long resumedTick;
  private FileChannel channel;

  private MetricsCsv(Path file, List<String> columns, long resumedTick) throws IOException {
    this.file = file;
    this.resumedTick = resumedTick;
    this.columns = new ArrayList<>(columns);
    this.channel = open();
  }

  /** One row: how far the run is, and what was measured since the last one. */
  public record Row(long tick, long envSteps, long updates, Map<String, Double> metrics) {}

  /** Starts an empty file; the header comes with the first row. */
  public static MetricsCsv create(Path file) throws IOException {
    return new MetricsCsv(file, List.of(), 0);
  }

  /**
   * Goes on after a checkpoint: rows of later ticks, and a last one that was cut off, are dropped.
   * A line that is no row is refused: it would be lost.
   */
  public static MetricsCsv resume(Path file, long tick) throws IOException {
    if (!Files.exists(file) || Files.size(file) == 0) {
      return create(file);
    }
    List<String> lines = completeLines(file);
    List<String> kept = new ArrayList<>();
    List<String> columns = List.of();
    if (!lines.isEmpty()) {
      columns = List.of(lines.get(0).split(",", -1));
      refuseForeign(file, columns);
      kept.add(lines.get(0));
    }
    long last = 0;
    for (int i = kept.size(); i < lines.size(); i++) {
      String line = lines.get(i);
      long at = tick(line);
      if (at < 0 || (at <= tick && line.split(",", -1).length != columns.size())) {
        throw noRow(file + ":" + (i + 1), columns.size(), line);
      }
      if (at <= tick) {
        kept.add(line);
        last = at;
      }
    }
    rewrite(file, kept);
    return new MetricsCsv(file, columns, last);
  }

  /** The tick of the last row that was there before the first one of ours; 0 for none. */
  public long resumedTick() {
    return resumedTick;
  }

  private static BadInputException noRow(String where, int cells, String line) {
    return new BadInputException(
        where
            + ": no row of a run: expected a tick first and "
            + cells
            + " cells, got \""
            + line
            + "\"; repair it, or move the file away, and a new one is begun");
  }

  /** Its rows would be dropped as none of ours. */
  private static void refuseForeign(Path file, List<String> columns) {
    List<String> first = columns.subList(0, Math.min(FIRST.size(), columns.size()));
    if (!first.equals(FIRST)) {
      throw new BadInputException(
          file
              + ": no metrics of a run: expected a header that begins with "
              + String.join(",", FIRST)
              + ", got \""
              + String.join(",", first)
              + "\"; move it away, and a new one is begun");
    }
  }

  public void append(Row row) throws IOException {
    StringBuilder text = new StringBuilder();
    List<String> added =
        row.metrics().keySet().stream().filter(name -> !columns.contains(name)).toList();
    if (columns.isEmpty()) {
      columns.addAll(FIRST);
      columns.addAll(added);
      text.append(String.join(",", columns)).append('\n');
    } else if (!added.isEmpty()) {
      widen(added);
    }
    text.append(row.tick()).append(',').append(row.envSteps()).append(',').append(row.updates());
    for (String column : columns.subList(FIRST.size(), columns.size())) {
      text.append(',').append(cell(row.metrics().get(column)));
    }
    write(text.append('\n').toString());
  }

  private void widen(List<String> added) throws IOException {
    List<String> lines = completeLines(file);
    channel.close();
    columns.addAll(added);
    List<String> wide = new ArrayList<>();
    wide.add(String.join(",", columns));
    lines.stream().skip(1).forEach(line -> wide.add(line + ",".repeat(added.size())));
    rewrite(file, wide);
    channel = open();
  }

  private static String cell(Double value) {
    if (value == null || !Double.isFinite(value)) {
      return "";
    }
    return value == Math.rint(value) && Math.abs(value) < 1e15
        ? Long.toString(value.longValue())
        : Double.toString(value);
  }

  /** -1 for what is none. */
  private static long tick(String line) {
    int comma = line.indexOf(',');
    try {
      return Long.parseLong(comma < 0 ? line : line.substring(0, comma));
    } catch (NumberFormatException e) {
      return -1;
    }
  }

  /** Without a last line that has no end: the process was killed while it wrote it. */
  private static List<String> completeLines(Path file) throws IOException {
    String text;
    try {
      text = Files.readString(file);
    } catch (IOException e) {
      throw FileErrors.cannot("read", file, e);
    }
    int end = text.lastIndexOf('\n');
    return end < 0 ? List.of() : List.of(text.substring(0, end).split("\n"));
  }

  private static void rewrite(Path file, List<String> lines) throws IOException {
    StringBuilder text = new StringBuilder();
    lines.forEach(line -> text.append(line).append('\n'));
    AtomicFile.write(FileOps.SYSTEM, file, text.toString().getBytes(StandardCharsets.UTF_8));
  }

  private FileChannel open() throws IOException {
    try {
      return FileChannel.open(
          file, StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.APPEND);
    } catch (IOException e) {
      throw FileErrors.cannot("write", file, e);
    }
  }

  private void write(String text) throws IOException {
    try {
      FileOps.SYSTEM.write(channel, ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)));
    } catch (IOException e) {
      throw FileErrors.cannot("write", file, e);
    }
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}

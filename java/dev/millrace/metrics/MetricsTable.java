package dev.millrace.metrics;

import dev.millrace.io.FileErrors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** What a metrics.csv holds; an empty cell is NaN. */
public record MetricsTable(List<String> columns, List<double[]> rows) {
  /** Without a last row that has no end: the process was killed while it wrote it. */
  public static MetricsTable read(Path file) throws IOException {
    List<String> lines;
    try {
      String text = Files.readString(file);
      lines = text.substring(0, text.lastIndexOf('\n') + 1).lines().toList();
    } catch (IOException e) {
      throw FileErrors.cannot("read", file, e);
    }
    if (lines.isEmpty()) {
      return new MetricsTable(List.of(), List.of());
    }
    List<String> columns = List.of(lines.get(0).split(",", -1));
    List<double[]> rows = new ArrayList<>();
    for (int i = 1; i < lines.size(); i++) {
      rows.add(row(lines.get(i), columns.size(), file + ":" + (i + 1)));
    }
    return new MetricsTable(columns, rows);
  }

  private static double[] row(String line, int columns, String where) throws IOException {
    String[] cells = line.split(",", -1);
    if (cells.length != columns) {
      throw new IOException(where + ": " + cells.length + " cells under " + columns + " columns");
    }
    double[] row = new double[columns];
    for (int c = 0; c < columns; c++) {
      try {
        row[c] = cells[c].isEmpty() ? Double.NaN : Double.parseDouble(cells[c]);
      } catch (NumberFormatException e) {
        throw new IOException(where + ": not a number: " + cells[c], e);
      }
    }
    return row;
  }

  /** The finite values of a column in the second half of the rows. */
  public double[] secondHalf(int column) {
    return rows.subList(rows.size() / 2, rows.size()).stream()
        .mapToDouble(row -> row[column])
        .filter(Double::isFinite)
        .toArray();
  }
}

package dev.millrace.metrics;

import dev.millrace.io.FileErrors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** What the metrics.csv of a run that has ended holds; an empty cell is NaN. */
public record MetricsTable(List<String> columns, List<double[]> rows) {
  /** Every failure is one line that names the file and, where one is damaged, the line. */
  public static MetricsTable read(Path file) throws IOException {
    String text;
    try {
      text = Files.readString(file);
    } catch (IOException e) {
      throw FileErrors.cannot("read", file, e);
    }
    List<String> lines = text.lines().toList();
    if (lines.isEmpty()) {
      return new MetricsTable(List.of(), List.of());
    }
    if (!text.endsWith("\n")) {
      throw new IOException(file + ":" + lines.size() + ": the line has no end: it was cut off");
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
      row[c] = cells[c].isEmpty() ? Double.NaN : number(cells[c], where);
    }
    return row;
  }

  private static double number(String cell, String where) throws IOException {
    try {
      double number = Double.parseDouble(cell);
      if (Double.isFinite(number)) {
        return number;
      }
    } catch (NumberFormatException e) {
      // As one that is not finite: no value of a run.
    }
    throw new IOException(where + ": not a finite number: " + cell);
  }

  /** The finite values of a column in the second half of the rows. */
  public double[] secondHalf(int column) {
    return rows.subList(rows.size() / 2, rows.size()).stream()
        .mapToDouble(row -> row[column])
        .filter(Double::isFinite)
        .toArray();
  }
}

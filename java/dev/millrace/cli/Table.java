package dev.millrace.cli;

import dev.millrace.core.Json;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/** Rows under named columns, as aligned text or as JSON. */
final class Table {
  private final List<String> columns;
  private final List<List<Object>> rows = new ArrayList<>();

  Table(String... columns) {
    this.columns = List.of(columns);
  }

  /** Cells are texts, numbers, booleans, or null for nothing. */
  Table row(Object... cells) {
    if (cells.length != columns.size()) {
      throw new IllegalArgumentException(cells.length + " cells for " + columns);
    }
    List<Object> row = new ArrayList<>();
    for (Object cell : cells) {
      row.add(cell);
    }
    rows.add(row);
    return this;
  }

  boolean isEmpty() {
    return rows.isEmpty();
  }

  /** Columns of nothing but numbers are aligned to the right. */
  void print(PrintStream out) {
    int[] widths = new int[columns.size()];
    boolean[] right = new boolean[columns.size()];
    for (int c = 0; c < widths.length; c++) {
      widths[c] = columns.get(c).length();
      right[c] = !rows.isEmpty();
      for (List<Object> row : rows) {
        Object cell = row.get(c);
        widths[c] = Math.max(widths[c], text(cell).length());
        right[c] &= cell == null || cell instanceof Number;
      }
    }
    printLine(out, columns, widths, right);
    rows.forEach(row -> printLine(out, row, widths, right));
  }

  private static void printLine(PrintStream out, List<?> cells, int[] widths, boolean[] right) {
    StringBuilder line = new StringBuilder();
    for (int c = 0; c < widths.length; c++) {
      String text = text(cells.get(c));
      String fill = " ".repeat(widths[c] - text.length());
      line.append(right[c] ? fill + text : text + fill).append("  ");
    }
    out.println(line.toString().stripTrailing());
  }

  private static String text(Object cell) {
    if (cell == null) {
      return "-";
    }
    if (cell instanceof Double number) {
      return Double.isFinite(number) ? number(number) : "-";
    }
    return cell instanceof Number whole
        ? String.format(Locale.ROOT, "%,d", whole.longValue())
        : cell.toString();
  }

  private static String number(double value) {
    boolean small = value != 0 && Math.abs(value) < 0.01;
    return String.format(Locale.ROOT, small ? "%.3g" : "%,.3f", value);
  }

  /** An object for each row, keyed by the column names with underscores. */
  ArrayNode json() {
    ArrayNode array = Json.object().putArray("rows");
    for (List<Object> row : rows) {
      ObjectNode object = array.addObject();
      for (int c = 0; c < columns.size(); c++) {
        object.set(columns.get(c).replace(' ', '_'), node(row.get(c)));
      }
    }
    return array;
  }

  private static JsonNode node(Object cell) {
    boolean unknown = cell instanceof Double number && !Double.isFinite(number);
    return Json.tree(unknown ? null : cell);
  }
}

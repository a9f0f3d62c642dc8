package dev.millrace.cli;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** A bench's report as text. */
final class BenchTables {
  private BenchTables() {}

  /** What was measured comes last: that is what one looks for. */
  static void print(ObjectNode report, PrintStream out) {
    ObjectNode rest = report.deepCopy();
    for (String name :
        List.of(
            "medians", "iqr", "modes", "config", "build", "cases", "many_shapes", "break_even")) {
      rest.remove(name);
    }
    JsonTables.print(rest, out);
    GalleryTables.print(report, out);
    JsonNode medians = report.path("medians");
    if (medians.isObject()) {
      Table table = new Table("measured", "median", "IQR");
      for (var each : medians.properties()) {
        JsonNode iqr = report.path("iqr").path(each.getKey());
        table.row(each.getKey(), Reports.cell(each.getValue()), Reports.cell(iqr));
      }
      out.println();
      table.print(out);
    }
    printModes(report.path("modes"), out);
  }

  /** The medians of every mode side by side. */
  private static void printModes(JsonNode modes, PrintStream out) {
    List<String> header = new ArrayList<>(List.of("median"));
    Set<String> measured = new LinkedHashSet<>();
    for (var mode : modes.properties()) {
      header.add(mode.getKey());
      mode.getValue().path("medians").properties().forEach(each -> measured.add(each.getKey()));
    }
    if (measured.isEmpty()) {
      return;
    }
    Table table = new Table(header.toArray(String[]::new));
    for (String name : measured) {
      List<Object> row = new ArrayList<>(List.of(name));
      for (JsonNode mode : modes) {
        row.add(Reports.cell(mode.path("medians").path(name)));
      }
      table.row(row.toArray());
    }
    out.println();
    table.print(out);
  }
}

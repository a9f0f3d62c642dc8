package dev.millrace.cli;

import java.io.PrintStream;
import tools.jackson.databind.JsonNode;

/** The report of {@code bench graphs} as tables: a row for each way of each case. */
final class GalleryTables {
  private GalleryTables() {}

  static void print(JsonNode report, PrintStream out) {
    if (!report.path("cases").isEmpty()) {
      out.println();
      cases(report.path("cases")).print(out);
    }
    if (report.path("many_shapes").isObject()) {
      out.println();
      shapes(report.path("many_shapes")).print(out);
    }
    if (report.path("break_even").isObject()) {
      out.println();
      JsonTables.print(report.path("break_even"), out);
    }
  }

  private static Table cases(JsonNode cases) {
    Table table =
        new Table(
            "case",
            "way",
            "median us",
            "p99 us",
            "coverage",
            "copied bytes",
            "setup ms",
            "device bytes",
            "reason");
    for (JsonNode each : cases) {
      each.path("ways")
          .properties()
          .forEach(
              way ->
                  table.row(
                      each.path("name").asString(""),
                      way.getKey(),
                      Reports.cell(way.getValue().path("median_us")),
                      Reports.cell(way.getValue().path("p99_us")),
                      Reports.cell(way.getValue().path("coverage")),
                      Reports.cell(way.getValue().path("copied_bytes_per_run")),
                      Reports.cell(way.getValue().path("setup_ms")),
                      Reports.cell(way.getValue().path("device_bytes")),
                      way.getValue().path("reason").asString("")));
    }
    return table;
  }

  private static Table shapes(JsonNode shapes) {
    Table table = new Table("traffic", "way", "median us", "p99 us", "captures", "reason");
    for (JsonNode traffic : shapes.path("traffic")) {
      traffic
          .path("ways")
          .properties()
          .forEach(
              way ->
                  table.row(
                      traffic.path("name").asString(""),
                      way.getKey(),
                      Reports.cell(way.getValue().path("median_us")),
                      Reports.cell(way.getValue().path("p99_us")),
                      Reports.cell(way.getValue().path("captures")),
                      way.getKey().equals("scg")
                          ? traffic.path("residency").path("reason").asString("")
                          : ""));
    }
    return table;
  }
}

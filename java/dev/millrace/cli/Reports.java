package dev.millrace.cli;

import dev.millrace.checkpoint.Checkpoint;
import dev.millrace.config.ConfigLoader.Resolved;
import dev.millrace.core.Json;
import dev.millrace.preflight.Finding;
import dev.millrace.preflight.PreflightReport;
import dev.millrace.run.Outcome;
import dev.millrace.run.RunDirectory;
import java.io.PrintStream;
import java.util.List;
import java.util.Locale;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** Texts and JSON that more than one command prints. */
final class Reports {
  private Reports() {}

  /** What a run is about to use, before it starts. */
  static void start(PrintStream out, Resolved resolved, PreflightReport report) {
    var config = resolved.config();
    out.printf(Locale.ROOT, "%s with %s, seed %d%n", config.task(), config.algo(), config.seed());
    out.printf(Locale.ROOT, "profile %s (%s)%n", config.profile(), resolved.profileReason());
    JsonNode device = report.facts().path("device");
    out.printf(
        Locale.ROOT,
        "device %s (%s)%n",
        device.path("effective").asString("?"),
        device.path("reason").asString("requested"));
    for (Finding finding : report.findings()) {
      if (finding.isWarning()) {
        out.printf(Locale.ROOT, "%s %s: %s%n", finding.id(), finding.subject(), finding.reason());
      }
    }
  }

  static Table parts(List<Checkpoint.Part> parts) {
    Table table = new Table("part", "tensors", "bytes", "state");
    for (Checkpoint.Part part : parts) {
      String state = part.restored() ? "restored" : "absent";
      table.row(part.name(), part.tensors(), part.bytes(), state);
    }
    return table;
  }

  static Table findings(List<Finding> findings) {
    Table table = new Table("verdict", "id", "subject", "reason", "hint");
    findings.forEach(
        each ->
            table.row(
                each.verdict().toString(), each.id(), each.subject(), each.reason(), each.hint()));
    return table;
  }

  /** In one line what was asked for, and what is expected of a graph of the update step. */
  static String graph(JsonNode program, String what) {
    String requested = program.path("requested").asString("?");
    boolean sound = program.path("findings").isEmpty();
    String expected =
        switch (requested) {
          case "off" -> "runs eagerly, as requested";
          case "on" -> sound ? "can be captured" : "cannot be captured";
          default -> sound ? "can be captured" : "runs eagerly";
        };
    return "graph " + requested + ": " + what + " " + expected;
  }

  /** Every term of the update step: what it draws, and whether a graph can hold it. */
  static Table terms(JsonNode terms) {
    Table table =
        new Table(
            "kind",
            "term",
            "detail",
            "random stream",
            "draws per tick",
            "per reset",
            "class",
            "graph",
            "reason");
    for (JsonNode term : terms) {
      String hint = term.path("hint").asString("");
      table.row(
          term.path("kind").asString(""),
          term.path("term").asString(""),
          term.path("detail").asString(""),
          term.path("stream").asString(""),
          term.path("draws_per_tick").asLong(),
          term.path("draws_per_reset").asLong(),
          term.path("class").asString(""),
          term.path("verdict").asString(""),
          term.path("reason").asString("") + (hint.isEmpty() ? "" : " (" + hint + ")"));
    }
    return table;
  }

  /**
   * How a run ended: a few lines, or one JSON object. {@code onward} are the options with which a
   * stopped one goes on.
   */
  static void end(
      Context context, boolean json, RunDirectory directory, Outcome outcome, String onward) {
    ObjectNode summary = Json.object();
    summary.put("run", directory.path().toString());
    summary.put("status", outcome.stopped() ? "stopped" : "completed");
    summary.put("reason", outcome.reason());
    summary.put("ticks", outcome.tick());
    summary.put("env_steps", outcome.envSteps());
    summary.put("updates", outcome.updates());
    summary.put("seconds", outcome.seconds());
    number(summary, "return_mean", outcome.returnMean());
    number(summary, "episode_length_mean", outcome.episodeLengthMean());
    summary.put(
        "checkpoint", outcome.checkpoint() == null ? null : outcome.checkpoint().toString());
    if (json) {
      context.out().print(Json.pretty(summary));
      return;
    }
    if (outcome.stopped()) {
      context
          .out()
          .printf(
              Locale.ROOT,
              "stopped at tick %d; continue with: millrace resume %s%s%n",
              outcome.tick(),
              directory.path(),
              onward);
    }
    Table table = new Table("result", "value");
    summary.properties().forEach(each -> table.row(each.getKey(), cell(each.getValue())));
    table.print(context.out());
  }

  static void number(ObjectNode object, String key, double value) {
    if (Double.isFinite(value)) {
      object.put(key, value);
    } else {
      object.putNull(key);
    }
  }

  /** A JSON value as a table cell. */
  static Object cell(JsonNode value) {
    if (value == null || value.isNull() || value.isMissingNode()) {
      return null;
    }
    if (value.isIntegralNumber() && value.canConvertToLong()) {
      return value.asLong();
    }
    if (value.isFloatingPointNumber() && Double.isFinite(value.asDouble(Double.NaN))) {
      return value.asDouble();
    }
    return value.isString() ? value.asString() : Json.write(value);
  }
}

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
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** Texts and JSON that more than one command prints. */
final class Reports {
  private Reports() {}

  /** What a run is about to use, before it starts. */
  static void start(PrintStream out, Resolved resolved, PreflightReport report) {
    var config = resolved.config();
    out.printf("%s with %s, seed %d%n", config.task(), config.algo(), config.seed());
    out.printf("profile %s (%s)%n", config.profile(), resolved.profileReason());
    JsonNode device = report.facts().path("device");
    out.printf(
        "device %s (%s)%n",
        device.path("effective").asString("?"), device.path("reason").asString("requested"));
    for (Finding finding : report.findings()) {
      if (finding.verdict() == Finding.Verdict.EAGER_ONLY) {
        out.printf("%s %s: %s%n", finding.id(), finding.subject(), finding.reason());
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

  static Table findings(PreflightReport report) {
    Table table = new Table("verdict", "id", "subject", "reason", "hint");
    report
        .findings()
        .forEach(
            each ->
                table.row(
                    each.verdict().toString(),
                    each.id(),
                    each.subject(),
                    each.reason(),
                    each.hint()));
    return table;
  }

  /** How a run ended: a few lines, or one JSON object. */
  static void end(Context context, boolean json, RunDirectory directory, Outcome outcome) {
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
              "stopped at tick %d; continue with: millrace resume %s%n",
              outcome.tick(), directory.path());
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
    if (value.isIntegralNumber()) {
      return value.asLong();
    }
    if (value.isNumber()) {
      return value.asDouble();
    }
    return value.isString() ? value.asString() : Json.write(value);
  }
}

package dev.millrace.cli;

import dev.millrace.config.ConfigLoader.Resolved;
import dev.millrace.core.Json;
import dev.millrace.preflight.PreflightReport;
import dev.millrace.run.RunDirectory;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** {@code preflight CONFIG}: everything that would refuse a run, without running it. */
@Command(
    name = "preflight",
    description =
        "Check a configuration on this machine: all findings at once, the budget, every term.",
    mixinStandardHelpOptions = true,
    footer = {
      "",
      "Ends with code 3 if anything would refuse the run. draws: random numbers (32-bit words) that"
          + " a term takes for each robot, at most; graph: whether a graph could hold the term.",
      "",
      "Examples",
      "  millrace preflight g1_walk_flat",
      "  millrace preflight g1_walk_flat --profile full -s env.num_envs=4096 --json",
      "  millrace preflight g1_walk_flat -s device=cuda -s graph=on"
    })
final class PreflightCommand implements Callable<Integer> {
  private final Context context;

  @Mixin private ConfigOptions options;

  @Option(
      names = "--out",
      paramLabel = "DIR",
      description = "First try whether a run could write here, as train does.")
  private Path out;

  @Option(names = "--json", description = "Print JSON.")
  private boolean json;

  PreflightCommand(Context context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    if (out != null) {
      new RunDirectory(out).refuseUnusable();
    }
    Resolved resolved = context.load(options.config(), options.overrides());
    PreflightReport report = context.preflight(resolved);
    if (json) {
      ObjectNode result = Json.object();
      result.setAll((ObjectNode) report.facts());
      result.set("findings", Json.tree(report.findings()));
      context.out().print(Json.pretty(result));
    } else {
      print(resolved, report);
    }
    return report.refused().isEmpty() ? ExitCodes.OK : ExitCodes.REFUSED;
  }

  private void print(Resolved resolved, PreflightReport report) {
    context
        .out()
        .printf(
            Locale.ROOT,
            "profile %s (%s)%n",
            resolved.config().profile(),
            resolved.profileReason());
    JsonNode device = report.facts().path("device");
    context
        .out()
        .printf(
            Locale.ROOT,
            "device %s: %s (%s)%n",
            device.path("requested").asString("?"),
            device.path("effective").asString("?"),
            device.path("reason").asString(""));
    JsonNode update = report.facts().path("graphs").path("update");
    if (!update.isMissingNode()) {
      context.out().println(Reports.graph(update, "the update step"));
    }
    Table findings = Reports.findings(report.findings());
    if (!findings.isEmpty()) {
      context.out().println();
      findings.print(context.out());
    }
    for (String where : List.of("host", "device")) {
      JsonNode budget = report.facts().path("budget").path(where);
      Table table = new Table(where + " memory", "bytes", "formula");
      for (JsonNode item : budget.path("items")) {
        table.row(
            item.path("name").asString(""),
            item.path("bytes").asLong(),
            item.path("formula").asString(""));
      }
      for (String key : List.of("total_bytes", "limit_bytes", "free_bytes")) {
        table.row(key, Reports.cell(budget.path(key)), "");
      }
      context.out().println();
      table.print(context.out());
    }
    Table terms = Reports.terms(report.facts().path("terms"));
    if (!terms.isEmpty()) {
      context.out().println();
      terms.print(context.out());
    }
    context
        .out()
        .println(report.refused().isEmpty() ? "\nready" : "\nrefused: this run would not start");
  }
}

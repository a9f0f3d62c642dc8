package dev.millrace.cli;

import dev.millrace.config.ConfigException;
import dev.millrace.config.Nearest;
import dev.millrace.core.Json;
import dev.millrace.io.AtomicFile;
import dev.millrace.io.FileOps;
import dev.millrace.preflight.Finding;
import dev.millrace.preflight.PreflightReport;
import dev.millrace.preflight.RefusedException;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** {@code graph show}: the device programs of a configuration, without running them. */
@Command(
    name = "graph",
    description = "Look at the device programs of a configuration.",
    mixinStandardHelpOptions = true,
    footer = {"", "Example", "  millrace graph show g1_walk_flat"})
final class GraphCommand {
  /** {@code graph show CONFIG}. */
  @Command(
      name = "show",
      description =
          "A program of the device: its ops, the carriers they touch, what keeps it from a graph.",
      mixinStandardHelpOptions = true,
      footer = {
        "",
        "Needs no GPU. Draw the DOT file with: dot -Tsvg update.dot -o update.svg",
        "",
        "Examples",
        "  millrace graph show g1_walk_flat",
        "  millrace graph show g1_walk_flat --program learner_critic",
        "  millrace graph show g1_motion_tracking_sac -s graph=on --dot update.dot"
      })
  static final class Show implements Callable<Integer> {
    private final Context context;

    @Mixin private ConfigOptions options;

    @Option(
        names = "--program",
        paramLabel = "NAME",
        description =
            "${DEFAULT-VALUE} (the update step), learner_critic, or learner_critic_and_actor"
                + " (the actor's part).",
        defaultValue = "update")
    private String name;

    @Option(
        names = "--dot",
        paramLabel = "FILE",
        description = "Also write ops and carriers as a graph in DOT to this new file.")
    private Path dot;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    Show(Context context) {
      this.context = context;
    }

    @Override
    public Integer call() throws IOException {
      AnswerFile.refuseUnusable(dot);
      PreflightReport report =
          context.preflight(context.load(options.config(), options.overrides()));
      JsonNode graphs = report.facts().path("graphs");
      if (!graphs.path("update").has("ops")) { // no robot model, no task
        throw new RefusedException(report);
      }
      if (!graphs.has(name)) {
        throw new ConfigException(
            "--program: unknown program \""
                + name
                + "\""
                + Nearest.hint(name, graphs.propertyNames()));
      }
      JsonNode program = graphs.path(name);
      if (dot != null) {
        AtomicFile.write(FileOps.SYSTEM, dot, dot(program).getBytes(StandardCharsets.UTF_8));
      }
      if (json) {
        ObjectNode result = Json.object();
        result.set("graphs", graphs);
        result.set("terms", report.facts().path("terms"));
        context.out().print(Json.pretty(result));
      } else {
        print(program, name, context.out());
      }
      return ExitCodes.OK;
    }

    private static void print(JsonNode program, String name, PrintStream out) {
      out.println(Reports.graph(program, name.equals("update") ? "the update step" : name));
      Table findings = Reports.findings(findings(program));
      if (!findings.isEmpty()) {
        out.println();
        findings.print(out);
      }
      for (JsonNode op : program.path("ops")) {
        out.printf(
            Locale.ROOT,
            "%nop %s on %s (%s)%n",
            text(op, "name"),
            text(op, "device"),
            text(op, "site"));
        op.path("parts").forEach(part -> out.println("  " + part.asString("")));
      }
      out.println();
      carriers(program).print(out);
    }

    private static List<Finding> findings(JsonNode program) {
      List<Finding> findings = new ArrayList<>();
      program.path("findings").forEach(each -> findings.add(Finding.of(each)));
      return findings;
    }

    private static Table carriers(JsonNode program) {
      Table table = new Table("carrier", "bytes", "device", "changed by", "read by", "written by");
      long total = 0;
      for (JsonNode carrier : program.path("carriers")) {
        String name = text(carrier, "name");
        long bytes = carrier.path("bytes").asLong();
        total += bytes;
        table.row(
            name,
            bytes,
            text(carrier, "device"),
            text(carrier, "owner"),
            ops(program, "reads", name),
            ops(program, "writes", name));
      }
      return table.row("total", total, "", "", "", "");
    }

    /** The ops that have the carrier in their list. */
    private static String ops(JsonNode program, String list, String carrier) {
      List<String> names = new ArrayList<>();
      for (JsonNode op : program.path("ops")) {
        for (JsonNode each : op.path(list)) {
          if (each.asString("").equals(carrier)) {
            names.add(text(op, "name"));
          }
        }
      }
      return String.join(", ", names);
    }

    /** Ops as boxes, carriers as ellipses, an edge for each read and write. */
    private static String dot(JsonNode program) {
      StringBuilder dot = new StringBuilder("digraph " + quoted(text(program, "name")) + " {\n");
      dot.append("  rankdir=LR;\n");
      for (JsonNode carrier : program.path("carriers")) {
        String name = text(carrier, "name");
        String label =
            String.format(Locale.ROOT, "%s\n%,d B", name, carrier.path("bytes").asLong());
        dot.append("  " + quoted(name) + " [label=" + quoted(label) + "];\n");
      }
      for (JsonNode op : program.path("ops")) {
        String name = "op " + text(op, "name");
        StringBuilder label = new StringBuilder(name + "\n" + text(op, "site"));
        op.path("parts").forEach(part -> label.append("\n").append(part.asString("")));
        dot.append("  " + quoted(name) + " [shape=box, label=" + quoted(label.toString()) + "];\n");
        op.path("reads").forEach(each -> dot.append(edge(each.asString(""), name)));
        op.path("writes").forEach(each -> dot.append(edge(name, each.asString(""))));
      }
      return dot.append("}\n").toString();
    }

    private static String edge(String from, String to) {
      return "  " + quoted(from) + " -> " + quoted(to) + ";\n";
    }

    private static String quoted(String text) {
      return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + '"';
    }

    private static String text(JsonNode node, String key) {
      return node.path(key).asString("");
    }
  }
}

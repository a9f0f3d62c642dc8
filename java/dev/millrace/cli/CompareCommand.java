package dev.millrace.cli;

import dev.millrace.compare.Comparison;
import dev.millrace.compare.Side;
import dev.millrace.core.Json;
import dev.millrace.metrics.Spread;
import dev.millrace.run.BadInputException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.node.ObjectNode;

/** {@code compare A B}: whether B is slower than A, or learns less. */
@Command(
    name = "compare",
    description = {
      "Compare two bench reports, two runs, or two folders that hold several of either.",
      "",
      Comparison.RULE,
      "",
      "Of a run the second half of metrics.csv counts, which must be what the run left: times, rates"
          + " and returns. In a folder each"
          + " run or report gives one value. Refused if configuration (but run, log, checkpoint),"
          + " device, processor, compiler or threads differ."
    },
    mixinStandardHelpOptions = true,
    exitCodeListHeading = "%nExit codes%n",
    exitCodeList = {
      "0:nothing is worse",
      "2:an input that cannot be read",
      "3:refused: the two are not comparable",
      "4:something is worse"
    },
    footer = {
      "",
      "Examples",
      "  millrace compare before.json after.json",
      "  millrace compare runs/resident runs/double_buffer --varying replay.pipeline"
    })
final class CompareCommand implements Callable<Integer> {
  private final Context context;

  @Parameters(index = "0", paramLabel = "A", description = "What it is compared with.")
  private Path first;

  @Parameters(index = "1", paramLabel = "B", description = "What is judged.")
  private Path second;

  @Option(
      names = "--max-regression",
      paramLabel = "SHARE",
      defaultValue = "0.05",
      description = "The change that is never held against B (default: ${DEFAULT-VALUE}).")
  private double maxRegression;

  @Option(
      names = "--varying",
      paramLabel = "KEY",
      description = "A key that may differ: it is what the comparison is about. Repeatable.")
  private List<String> varying = new ArrayList<>();

  @Option(names = "--json", description = "Print JSON.")
  private boolean json;

  CompareCommand(Context context) {
    this.context = context;
  }

  @Override
  public Integer call() throws IOException {
    if (!(maxRegression >= 0)) {
      throw new BadInputException("--max-regression " + maxRegression + ": expected at least 0");
    }
    Side a = Side.read(first);
    Side b = Side.read(second);
    Comparison comparison = Comparison.of(a, b, varying, maxRegression);
    if (json) {
      context.out().print(Json.pretty(json(a, b, comparison)));
    } else {
      print(a, b, comparison);
    }
    if (!comparison.refusals().isEmpty()) {
      return ExitCodes.REFUSED;
    }
    return comparison.worse().isEmpty() ? ExitCodes.OK : ExitCodes.RUN_FAILED;
  }

  private void print(Side a, Side b, Comparison comparison) {
    var out = context.out();
    out.printf(Locale.ROOT, "A: %s (%d)%nB: %s (%d)%n", a.path(), a.size(), b.path(), b.size());
    for (Comparison.Difference each : comparison.subject()) {
      out.printf(Locale.ROOT, "subject %s: %s | %s%n", each.key(), each.a(), each.b());
    }
    out.println();
    if (!comparison.refusals().isEmpty()) {
      differences(comparison.refusals()).print(out);
      out.println("\nrefused: A and B are not comparable (--varying KEY lets a key differ)");
      return;
    }
    metrics(comparison).print(out);
    out.printf(Locale.ROOT, "%n%s (--max-regression %s)%n%n", Comparison.RULE, maxRegression);
    List<String> worse = comparison.worse();
    out.println(worse.isEmpty() ? "nothing is worse" : "worse: " + String.join(", ", worse));
  }

  private ObjectNode json(Side a, Side b, Comparison comparison) {
    boolean refused = !comparison.refusals().isEmpty();
    String verdict = comparison.worse().isEmpty() ? "not worse" : "worse";
    ObjectNode result = Json.object().put("verdict", refused ? "refused" : verdict);
    result.putObject("a").put("path", a.path().toString()).put("count", a.size());
    result.putObject("b").put("path", b.path().toString()).put("count", b.size());
    result.put("rule", Comparison.RULE).put("max_regression", maxRegression);
    result.set("subject", differences(comparison.subject()).json());
    result.set("refusals", differences(comparison.refusals()).json());
    result.set("worse", Json.tree(comparison.worse()));
    result.set("metrics", metrics(comparison).json());
    return result;
  }

  private static Table differences(List<Comparison.Difference> differences) {
    Table table = new Table("key", "a", "b");
    differences.forEach(each -> table.row(each.key(), each.a(), each.b()));
    return table;
  }

  private static Table metrics(Comparison comparison) {
    Table table = new Table("metric", "median a", "median b", "iqr a", "iqr b", "ratio", "verdict");
    Spread none = new Spread(Double.NaN, Double.NaN);
    for (Comparison.Metric each : comparison.metrics()) {
      Spread a = each.a() == null ? none : each.a();
      Spread b = each.b() == null ? none : each.b();
      table.row(
          each.name(),
          a.median(),
          b.median(),
          a.iqr(),
          b.iqr(),
          each.ratio(),
          each.verdict().toString());
    }
    return table;
  }
}

package dev.millrace.cli;

import dev.millrace.core.Json;
import dev.millrace.run.BadInputException;
import dev.millrace.trace.TraceSummary;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.node.ObjectNode;

/** {@code trace summary}: where the time of a trace went. */
@Command(
    name = "trace",
    description = "Look at the trace of a run.",
    mixinStandardHelpOptions = true,
    footer = {"", "Example", "  millrace trace summary runs/third/trace.json"})
final class TraceCommand {
  /** {@code trace summary FILE}. */
  @Command(
      name = "summary",
      description = "Times of every span, and what of it lies inside the updates.",
      mixinStandardHelpOptions = true,
      footer = {
        "",
        "share: of the trace's time; spans that overlap, on threads or inside each other, add up to"
            + " more than 1.",
        "inside: the share of spans that lie inside an update window, the time of all updates of a"
            + " tick.",
        "exposed: the median time in a tick that work on the replay takes outside of it.",
        "",
        "Example",
        "  millrace trace summary runs/third/trace.json --warm-up 10"
      })
  static final class Summary implements Callable<Integer> {
    private static final int SHOWN_TRACKS = 3;

    private final Context context;

    @Parameters(paramLabel = "FILE", description = "A trace in Chrome's JSON.")
    private Path file;

    @Option(
        names = "--warm-up",
        paramLabel = "SECONDS",
        defaultValue = "0",
        description = "Leave out what began in this time (default: ${DEFAULT-VALUE}).")
    private double warmUp;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    Summary(Context context) {
      this.context = context;
    }

    @Override
    public Integer call() throws IOException {
      if (!(warmUp >= 0)) {
        throw new BadInputException("--warm-up " + warmUp + ": expected at least 0");
      }
      TraceSummary summary = TraceSummary.read(file, warmUp);
      if (json) {
        context.out().print(Json.pretty(json(summary)));
      } else {
        print(summary);
      }
      return ExitCodes.OK;
    }

    private void print(TraceSummary summary) {
      var out = context.out();
      Table table =
          new Table(
              "span",
              "count",
              "median us",
              "p90 us",
              "p99 us",
              "total ms",
              "share",
              "inside",
              "on");
      for (TraceSummary.Row row : summary.spans()) {
        table.row(
            row.name(),
            row.count(),
            row.medianMicros(),
            row.p90Micros(),
            row.p99Micros(),
            row.totalMillis(),
            row.timeShare(),
            row.insideShare(),
            shorten(row.tracks()));
      }
      table.print(out);
      out.println();
      if (!Double.isNaN(summary.deviceBusyShare())) {
        out.printf(
            Locale.ROOT,
            "device busy: %.1f %% of %.1f s%n",
            100 * summary.deviceBusyShare(),
            summary.seconds());
      }
      if (summary.exposed().isEmpty()) {
        out.println("no update windows: what is inside them, or exposed, is unknown");
      } else {
        exposed(summary).print(out);
        out.printf(Locale.ROOT, "(median of %,d ticks)%n", summary.ticks());
      }
      if (summary.dropped() > 0) {
        out.printf(
            Locale.ROOT,
            "incomplete: %,d records were dropped when it was written%n",
            summary.dropped());
      }
      if (summary.broken() != null) {
        out.println("incomplete: the file breaks off (" + summary.broken() + ")");
      }
    }

    private static String shorten(List<String> tracks) {
      String shown = String.join(", ", tracks.subList(0, Math.min(SHOWN_TRACKS, tracks.size())));
      int more = tracks.size() - SHOWN_TRACKS;
      return more > 0 ? shown + " and " + more + " more" : shown;
    }

    private static Table exposed(TraceSummary summary) {
      Table table = new Table("name", "exposed us per tick");
      summary.exposed().forEach(each -> table.row(each.name(), each.microsPerTick()));
      return table;
    }

    private ObjectNode json(TraceSummary summary) {
      ObjectNode result = Json.object().put("file", file.toString());
      result.put("complete", summary.broken() == null && summary.dropped() == 0);
      result.put("broken", summary.broken()).put("dropped", summary.dropped());
      result.put("warm_up_s", warmUp).put("ticks", summary.ticks());
      result.put("seconds", summary.seconds());
      Reports.number(result, "device_busy_share", summary.deviceBusyShare());
      var spans = result.putArray("spans");
      for (TraceSummary.Row row : summary.spans()) {
        ObjectNode span = spans.addObject().put("name", row.name()).put("count", row.count());
        span.put("median_us", row.medianMicros()).put("p90_us", row.p90Micros());
        span.put("p99_us", row.p99Micros()).put("total_ms", row.totalMillis());
        Reports.number(span, "time_share", row.timeShare());
        Reports.number(span, "inside_share", row.insideShare());
        span.set("tracks", Json.tree(row.tracks()));
      }
      result.set("exposed", exposed(summary).json());
      return result;
    }
  }
}

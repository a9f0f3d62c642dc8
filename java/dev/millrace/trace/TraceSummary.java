package dev.millrace.trace;

import dev.millrace.metrics.Spread;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Where the time of a trace went.
 *
 * @param seconds from the first begin to the last end
 * @param deviceBusyShare of that time in which at least one span of the device ran; NaN if there is
 *     none
 * @param ticks from the begin of one update window to that of the next
 * @param dropped records that the writer had no room for
 * @param broken why the file could not be read to its end, or null
 */
public record TraceSummary(
    List<Row> spans,
    double seconds,
    double deviceBusyShare,
    List<Exposed> exposed,
    int ticks,
    long dropped,
    String broken) {
  /** Holds all updates of a tick. */
  private static final String WINDOW = "learner/update_window";

  /** What begins the name of a span of the device. */
  private static final String DEVICE = "gpu/";

  /** The replay's work, which belongs inside an update window. */
  private static final List<String> REPLAY =
      List.of(
          "replay/add",
          "replay_pipeline/ingress_commit",
          "replay_pipeline/gpu_batch_gather_submit",
          "gpu/replay_pipeline_storage_h2d",
          "gpu/replay_pipeline_batch_gather");

  private static final double NANOS_PER_MICRO = 1e3;
  private static final double MICROS_PER_MILLI = 1e3;
  private static final double NANOS_PER_SECOND = 1e9;

  /**
   * All spans of one name.
   *
   * @param timeShare total time as a share of the trace's
   * @param insideShare of the spans that lie inside one update window; NaN if there is no window
   */
  public record Row(
      String name,
      int count,
      double medianMicros,
      double p90Micros,
      double p99Micros,
      double totalMillis,
      double timeShare,
      double insideShare,
      List<String> tracks) {}

  /** Median time of a tick that spans of a name take outside of update windows. */
  public record Exposed(String name, double microsPerTick) {}

  /**
   * Reads a trace.
   *
   * @param warmUpSeconds spans that began earlier after the first one are left out
   */
  public static TraceSummary read(Path file, double warmUpSeconds) throws IOException {
    TraceFile trace = TraceFile.read(file);
    Windows windows = new Windows(trace.spans().get(WINDOW));
    long from = firstBegin(trace) + Math.round(warmUpSeconds * NANOS_PER_SECOND);
    long nanos = lastEnd(trace, from) - from;
    List<Row> rows = new ArrayList<>();
    trace.spans().forEach((name, spans) -> addRow(trace, name, windows, from, nanos, rows));
    int ticks = windows.exposed(List.of(), from).length;
    return new TraceSummary(
        rows,
        nanos / NANOS_PER_SECOND,
        busyShare(trace, from, nanos),
        ticks == 0 ? List.of() : exposed(trace, windows, from),
        ticks,
        trace.dropped(),
        trace.broken());
  }

  private static long firstBegin(TraceFile trace) {
    long first = Long.MAX_VALUE;
    for (Spans spans : trace.spans().values()) {
      for (int i = 0; i < spans.size(); i++) {
        first = Math.min(first, spans.begin(i));
      }
    }
    return first == Long.MAX_VALUE ? 0 : first;
  }

  private static long lastEnd(TraceFile trace, long from) {
    long last = from;
    for (Spans spans : trace.spans().values()) {
      for (int i = 0; i < spans.size(); i++) {
        last = Math.max(last, spans.end(i));
      }
    }
    return last;
  }

  /** Spans that overlap count once. */
  private static double busyShare(TraceFile trace, long from, long nanos) {
    List<long[]> spans = new ArrayList<>();
    trace
        .spans()
        .forEach(
            (name, all) -> {
              for (int i = 0; name.startsWith(DEVICE) && i < all.size(); i++) {
                if (all.begin(i) >= from) {
                  spans.add(new long[] {all.begin(i), all.end(i)});
                }
              }
            });
    if (spans.isEmpty() || nanos == 0) {
      return Double.NaN;
    }
    spans.sort(Comparator.comparingLong(span -> span[0]));
    long busy = 0;
    long done = Long.MIN_VALUE;
    for (long[] span : spans) {
      busy += Math.max(0, span[1] - Math.max(span[0], done));
      done = Math.max(done, span[1]);
    }
    return (double) busy / nanos;
  }

  private static void addRow(
      TraceFile trace, String name, Windows windows, long from, long nanos, List<Row> rows) {
    Spans spans = trace.spans().get(name);
    double[] micros = new double[spans.size()];
    int count = 0;
    int inside = 0;
    for (int i = 0; i < spans.size(); i++) {
      if (spans.begin(i) >= from) {
        micros[count++] = (spans.end(i) - spans.begin(i)) / NANOS_PER_MICRO;
        inside += windows.contains(spans.begin(i), spans.end(i)) ? 1 : 0;
      }
    }
    if (count == 0) {
      return;
    }
    micros = Arrays.copyOf(micros, count);
    Arrays.sort(micros);
    double total = Arrays.stream(micros).sum();
    boolean known = windows.size() > 0 && !name.equals(WINDOW);
    rows.add(
        new Row(
            name,
            count,
            Spread.quantile(micros, 0.5),
            Spread.quantile(micros, 0.9),
            Spread.quantile(micros, 0.99),
            total / MICROS_PER_MILLI,
            nanos == 0 ? Double.NaN : total * NANOS_PER_MICRO / nanos,
            known ? (double) inside / count : Double.NaN,
            spans.tracks().stream().map(trace::threadName).distinct().toList()));
  }

  /** For each kind of work, and for the time in which any of it happens. */
  private static List<Exposed> exposed(TraceFile trace, Windows windows, long from) {
    Map<String, List<Spans>> groups = new LinkedHashMap<>();
    for (String name : REPLAY) {
      if (trace.spans().containsKey(name)) {
        groups.put(name, List.of(trace.spans().get(name)));
      }
    }
    groups.put(
        "any of these", REPLAY.stream().map(trace.spans()::get).filter(Objects::nonNull).toList());
    return groups.entrySet().stream()
        .map(
            group -> {
              long[] nanos = windows.exposed(group.getValue(), from);
              double median = Spread.of(Arrays.stream(nanos).asDoubleStream().toArray()).median();
              return new Exposed(group.getKey(), median / NANOS_PER_MICRO);
            })
        .toList();
  }
}

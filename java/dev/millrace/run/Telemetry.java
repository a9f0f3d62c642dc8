package dev.millrace.run;

import dev.millrace.config.RunConfig;
import dev.millrace.metrics.MetricsCsv;
import dev.millrace.metrics.TensorBoardWriter;
import dev.millrace.progress.Progress;
import dev.millrace.progress.Status;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import tools.jackson.databind.JsonNode;

/** Passes what the engine measured on to metrics.csv, TensorBoard and the progress display. */
final class Telemetry implements AutoCloseable {
  private static final String RETURN = "return_mean";
  private static final String LENGTH = "episode_length_mean";
  private static final String NON_FINITE = "non_finite"; // ticks of a robot since the run began
  private static final String STEP_RATE = "env_steps_per_s";
  private static final String UPDATE_RATE = "updates_per_s";
  private static final String TIME_PREFIX = "time/";
  private static final String TIME_SUFFIX = "_ms";
  private static final String WHOLE_TICK = "time/tick_ms";

  private final RunConfig config;
  private final Progress progress;
  private final MetricsCsv csv;
  private final TensorBoardWriter tensorBoard;
  private double returnMean = Double.NaN;
  private double lengthMean = Double.NaN;
  private boolean warned;

  /**
   * @param tick where the run starts: 0, or the tick of the checkpoint it continues from
   */
  Telemetry(RunConfig config, RunDirectory directory, Progress progress, long tick)
      throws IOException {
    this.config = config;
    this.progress = progress;
    this.csv =
        tick == 0
            ? MetricsCsv.create(directory.metrics())
            : MetricsCsv.resume(directory.metrics(), tick);
    if (csv.resumedTick() < tick) { // rows are written before the checkpoint of their tick
      progress.note(
          String.format(
              Locale.ROOT,
              "warning: %s: the lines from tick %d to tick %d are lost",
              directory.metrics(),
              csv.resumedTick(),
              tick));
    }
    this.tensorBoard =
        config.log().tensorboard()
            ? TensorBoardWriter.create(directory.tensorBoard(), tick + 1)
            : null;
  }

  /** The counters after a call of advance, and how long the run has been going. */
  record Window(long tick, long envSteps, long updates, double seconds) {}

  /** Last known mean return of finished episodes; NaN before the first one. */
  double returnMean() {
    return returnMean;
  }

  double lengthMean() {
    return lengthMean;
  }

  void record(Window window, JsonNode result) throws IOException {
    Map<String, Double> metrics = new LinkedHashMap<>();
    for (Map.Entry<String, JsonNode> each : result.path("metrics").properties()) {
      JsonNode value = each.getValue();
      metrics.put(each.getKey(), value.isNumber() ? value.asDouble() : Double.NaN);
    }
    warnOfNonFinite(metrics.getOrDefault(NON_FINITE, 0.0), result.path("first_bad"));
    returnMean = known(metrics.get(RETURN), returnMean);
    lengthMean = known(metrics.get(LENGTH), lengthMean);
    Map<String, Double> tickMillis = tickMillis(metrics);
    metrics.put("elapsed_s", window.seconds());
    csv.append(new MetricsCsv.Row(window.tick(), window.envSteps(), window.updates(), metrics));
    if (tensorBoard != null) {
      tensorBoard.scalars(window.tick(), metrics);
    }
    double capacity = config.replay().capacityRows();
    double fill = result.path("replay").path("size").asDouble(Double.NaN) / capacity;
    progress.update(
        new Status(
            config.task(),
            window.tick(),
            config.run().maxTicks(),
            window.seconds(),
            config.run().maxSeconds(),
            window.envSteps(),
            window.updates(),
            metrics.getOrDefault(STEP_RATE, Double.NaN),
            metrics.getOrDefault(UPDATE_RATE, Double.NaN),
            returnMean,
            lengthMean,
            fill,
            tickMillis));
    refuseNonFinite(window, metrics.getOrDefault(NON_FINITE, 0.0), result.path("first_bad"));
  }

  /** The row of such a tick has no reward: an update learns nothing from such rows alone. */
  private static void refuseNonFinite(Window window, double robotTicks, JsonNode first) {
    if (window.updates() > 0 && robotTicks >= window.envSteps()) {
      throw new RunFailure(
          String.format(
              Locale.ROOT,
              "no tick of a robot was finite so far, so there is nothing to learn (%d of %d); the"
                  + " first bad one: %s",
              (long) robotTicks,
              window.envSteps(),
              first.asString("")),
          null);
    }
  }

  /** Once: such a tick ends the episode, and no other line would say so. */
  private void warnOfNonFinite(double robotTicks, JsonNode first) {
    if (warned || !(robotTicks > 0)) {
      return;
    }
    warned = true;
    progress.note(
        String.format(
            Locale.ROOT,
            "warning: %.0f ticks of a robot were not finite so far, and each ends its episode;"
                + " the first bad one: %s",
            robotTicks,
            first.asString("")));
  }

  private static Map<String, Double> tickMillis(Map<String, Double> metrics) {
    Map<String, Double> times = new LinkedHashMap<>();
    metrics.forEach(
        (name, value) -> {
          boolean part = name.startsWith(TIME_PREFIX) && name.endsWith(TIME_SUFFIX);
          if (part && value > 0 && !name.equals(WHOLE_TICK)) {
            times.put(
                name.substring(TIME_PREFIX.length(), name.length() - TIME_SUFFIX.length()), value);
          }
        });
    return times;
  }

  private static double known(Double value, double before) {
    return value == null || value.isNaN() ? before : value;
  }

  @Override
  public void close() throws IOException {
    csv.close();
    if (tensorBoard != null) {
      tensorBoard.close();
    }
  }
}

package dev.millrace.progress;

import java.util.Map;

/**
 * A run at one instant. What is not known (yet) is NaN.
 *
 * @param maxTicks 0 = no limit
 * @param maxSeconds 0 = no limit
 * @param replayFill 0 to 1
 * @param tickMillis where the time of a tick goes, by name, in milliseconds
 */
public record Status(
    String task,
    long tick,
    long maxTicks,
    double seconds,
    double maxSeconds,
    long envSteps,
    long updates,
    double envStepsPerSecond,
    double updatesPerSecond,
    double returnMean,
    double episodeLengthMean,
    double replayFill,
    Map<String, Double> tickMillis) {

  /** Share of the way to whichever limit comes first, 0 to 1. */
  double fraction() {
    double byTicks = maxTicks == 0 ? 0 : (double) tick / maxTicks;
    double byTime = maxSeconds == 0 ? 0 : seconds / maxSeconds;
    return Math.min(1, Math.max(byTicks, byTime));
  }

  /** Seconds to go; NaN when there is no limit or nothing to estimate from. */
  double secondsLeft() {
    double fraction = fraction();
    return fraction <= 0 ? Double.NaN : seconds * (1 - fraction) / fraction;
  }
}

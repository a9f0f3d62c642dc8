package dev.millrace.run;

import java.nio.file.Path;

/**
 * How a run ended.
 *
 * @param reason {@code max_ticks}, {@code max_seconds} or {@code signal}
 * @param checkpoint null if the run ended before its first tick
 */
public record Outcome(
    String reason,
    long tick,
    long envSteps,
    long updates,
    double seconds,
    double returnMean,
    double episodeLengthMean,
    Path checkpoint) {
  public boolean stopped() {
    return reason.equals("signal");
  }
}

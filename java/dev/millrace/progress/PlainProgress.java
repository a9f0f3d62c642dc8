package dev.millrace.progress;

import java.io.PrintStream;
import java.util.Locale;

/** Lines for logs and pipes: one at the start, then one every few seconds of training. */
final class PlainProgress implements Progress {
  private static final double SECONDS_BETWEEN = 5;

  private final PrintStream out;
  private Status pending;
  private double nextSeconds;

  PlainProgress(PrintStream out) {
    this.out = out;
  }

  @Override
  public void update(Status status) {
    pending = status;
    if (status.seconds() >= nextSeconds) {
      nextSeconds = status.seconds() + SECONDS_BETWEEN;
      print();
    }
  }

  @Override
  public void note(String line) {
    out.println(line);
  }

  @Override
  public void finish() {
    print();
  }

  private void print() {
    if (pending == null) {
      return;
    }
    Status status = pending;
    pending = null;
    out.printf(
        Locale.ROOT,
        "tick %s  %s  eta %s  %s env steps/s  %s updates/s  return %s  length %s  replay %s  [%s]%n",
        Figures.count(status.tick())
            + (status.maxTicks() > 0 ? "/" + Figures.count(status.maxTicks()) : ""),
        Figures.duration(status.seconds()),
        Figures.duration(status.secondsLeft()),
        Figures.rate(status.envStepsPerSecond()),
        Figures.rate(status.updatesPerSecond()),
        Figures.value(status.returnMean()),
        Figures.value(status.episodeLengthMean()),
        Figures.percent(status.replayFill()),
        Figures.times(status.tickMillis()));
  }
}

package dev.millrace.progress;

import java.io.PrintStream;
import java.util.List;
import java.util.Locale;

/** One block on a terminal, redrawn in place. */
final class LiveProgress implements Progress {
  private static final int BAR_WIDTH = 30;

  /** Cuts lines at the right edge while the block is drawn, so that its height is known. */
  private static final String NO_WRAP = "\033[?7l";

  private static final String WRAP = "\033[?7h";

  private final PrintStream out;
  private Status last;
  private int drawnLines;

  LiveProgress(PrintStream out) {
    this.out = out;
  }

  @Override
  public void update(Status status) {
    last = status;
    draw();
  }

  @Override
  public void note(String line) {
    erase();
    out.println(line);
    if (last != null) {
      draw();
    }
  }

  @Override
  public void finish() {
    out.flush();
  }

  private void erase() {
    if (drawnLines > 0) {
      out.printf(Locale.ROOT, "\033[%dA\033[J", drawnLines); // up so many lines, clear all below
      drawnLines = 0;
    }
  }

  private void draw() {
    List<String> lines = lines(last);
    StringBuilder block = new StringBuilder(NO_WRAP);
    lines.forEach(line -> block.append(line).append('\n'));
    erase();
    out.print(block.append(WRAP));
    out.flush();
    drawnLines = lines.size();
  }

  static List<String> lines(Status status) {
    String limit = status.maxTicks() > 0 ? " of " + Figures.count(status.maxTicks()) : "";
    return List.of(
        status.task()
            + "  ["
            + Figures.bar(status.fraction(), BAR_WIDTH)
            + "]  "
            + Figures.percent(status.fraction()),
        "  tick            " + Figures.count(status.tick()) + limit,
        "  time            "
            + Figures.duration(status.seconds())
            + "   eta "
            + Figures.duration(status.secondsLeft()),
        "  env steps       "
            + Figures.count(status.envSteps())
            + "   "
            + Figures.rate(status.envStepsPerSecond())
            + "/s",
        "  updates         "
            + Figures.count(status.updates())
            + "   "
            + Figures.rate(status.updatesPerSecond())
            + "/s",
        "  return          " + Figures.value(status.returnMean()),
        "  episode length  " + Figures.value(status.episodeLengthMean()),
        "  replay          " + Figures.percent(status.replayFill()) + " full",
        "  time of a tick  " + Figures.times(status.tickMillis()));
  }
}

package dev.millrace.progress;

import java.io.PrintStream;

/** Shows how a run goes. Called by the run's thread only. */
public interface Progress {
  /** A new state of the run; may be shown later or not at all if another one comes soon. */
  void update(Status status);

  /** A line that must not be lost. */
  void note(String line);

  /** Shows the last state. */
  void finish();

  /** One live block on a terminal, lines elsewhere. */
  static Progress on(PrintStream out) {
    return Terminal.is(out) ? new LiveProgress(out) : new PlainProgress(out);
  }
}

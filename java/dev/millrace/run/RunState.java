package dev.millrace.run;

import java.util.EnumSet;
import java.util.Set;

/** Where a run is in its life, and where it can go from there. */
public enum RunState {
  NEW,
  PREFLIGHTED,
  OPEN,
  RUNNING,
  STOPPING,
  CLOSED,
  FAILED;

  private Set<RunState> next() {
    return switch (this) {
      case NEW -> EnumSet.of(PREFLIGHTED, FAILED);
      case PREFLIGHTED -> EnumSet.of(OPEN, FAILED);
      case OPEN -> EnumSet.of(RUNNING, FAILED);
      case RUNNING -> EnumSet.of(STOPPING, FAILED);
      case STOPPING -> EnumSet.of(CLOSED, FAILED);
      case CLOSED, FAILED -> EnumSet.noneOf(RunState.class);
    };
  }

  /** Returns the next state; throws {@link IllegalStateException} for an edge that is not there. */
  RunState to(RunState target) {
    if (!next().contains(target)) {
      throw new IllegalStateException("a run cannot go from " + this + " to " + target);
    }
    return target;
  }
}

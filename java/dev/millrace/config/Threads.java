package dev.millrace.config;

/** A thread count, or {@code auto} (0): measured when the run starts. */
public record Threads(int count) {
  public static final Threads AUTO = new Threads(0);

  @Override
  public String toString() {
    return count == 0 ? "auto" : Integer.toString(count);
  }
}

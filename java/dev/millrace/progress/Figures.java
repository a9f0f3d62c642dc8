package dev.millrace.progress;

import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** Numbers as short, aligned text. */
final class Figures {
  private static final int TIMES_SHOWN = 5;

  private Figures() {}

  static String count(long value) {
    return String.format(Locale.ROOT, "%,d", value);
  }

  static String rate(double perSecond) {
    return Double.isFinite(perSecond)
        ? String.format(Locale.ROOT, perSecond < 100 ? "%,.1f" : "%,.0f", perSecond)
        : "-";
  }

  static String value(double value) {
    return Double.isFinite(value) ? String.format(Locale.ROOT, "%.1f", value) : "-";
  }

  static String percent(double fraction) {
    return Double.isFinite(fraction) ? Math.round(100 * fraction) + " %" : "-";
  }

  /** {@code 1:02:03} or {@code 2:03}. */
  static String duration(double seconds) {
    if (!Double.isFinite(seconds)) {
      return "-";
    }
    long whole = Math.round(seconds);
    return whole >= 3600
        ? String.format(Locale.ROOT, "%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60)
        : String.format(Locale.ROOT, "%d:%02d", whole / 60, whole % 60);
  }

  /** {@code physics 12.3 ms, learner 30.1 ms}, largest first; the small ones are left out. */
  static String times(Map<String, Double> millis) {
    String text =
        millis.entrySet().stream()
            .sorted(Map.Entry.<String, Double>comparingByValue().reversed())
            .limit(TIMES_SHOWN)
            .map(each -> each.getKey() + " " + value(each.getValue()) + " ms")
            .collect(Collectors.joining(", "));
    return text.isEmpty() ? "-" : text;
  }

  static String bar(double fraction, int width) {
    int full = (int) Math.round(fraction * width);
    return "#".repeat(full) + ".".repeat(width - full);
  }
}

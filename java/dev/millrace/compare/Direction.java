package dev.millrace.compare;

import java.util.Locale;
import java.util.regex.Pattern;

/** Which way of a metric is good; its name tells. */
enum Direction {
  HIGHER,
  LOWER,
  NEITHER;

  private static final Pattern HIGHER_NAMES =
      Pattern.compile(".*_per_s|.*(throughput|return).*|(.*[./])?ready_ticks");
  private static final Pattern LOWER_NAMES = Pattern.compile(".*_(us|ms|ns|s|bytes)|.*_wait.*");

  static Direction of(String metric) {
    if (HIGHER_NAMES.matcher(metric).matches()) {
      return HIGHER;
    }
    return LOWER_NAMES.matcher(metric).matches() ? LOWER : NEITHER;
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}

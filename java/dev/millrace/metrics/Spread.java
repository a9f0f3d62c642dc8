package dev.millrace.metrics;

import java.util.Arrays;

/**
 * Where values lie: their median, and the range of the middle half.
 *
 * @param iqr NaN if nobody knows it: a single value
 */
public record Spread(double median, double iqr) {
  /** Of at least one value. */
  public static Spread of(double... values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    double iqr = sorted.length == 1 ? Double.NaN : quantile(sorted, 0.75) - quantile(sorted, 0.25);
    return new Spread(quantile(sorted, 0.5), iqr);
  }

  /** Linear between the two nearest of the sorted values. */
  public static double quantile(double[] sorted, double share) {
    double place = share * (sorted.length - 1);
    int below = (int) place;
    int above = Math.min(below + 1, sorted.length - 1);
    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
  }
}

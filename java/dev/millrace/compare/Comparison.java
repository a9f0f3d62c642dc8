package dev.millrace.compare;

import dev.millrace.metrics.Spread;
import dev.millrace.run.BadInputException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * What B is against A.
 *
 * @param refusals facts that differ and should not: then there are no metrics
 * @param subject facts that were meant to differ, and do
 */
public record Comparison(
    List<Difference> refusals, List<Difference> subject, List<Metric> metrics) {
  /** The rule behind every verdict, for people. */
  public static final String RULE =
      "A metric is better or worse if the medians differ by more than the largest of"
          + " --max-regression and both IQRs, each relative to its own median. Lower is better for"
          + " names that end in _us, _ms, _ns, _s or _bytes or hold _wait; higher is better for"
          + " _per_s, throughput, return and ready_ticks; anything else only differs.";

  /** A fact with a value on each side; null where a side has none. */
  public record Difference(String key, String a, String b) {}

  /** What came out for a metric. */
  public enum Verdict {
    BETTER,
    WORSE,
    SAME,
    DIFFERS,
    ONLY_A,
    ONLY_B;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }
  }

  /** A metric with its spread on each side; null where a side has none. */
  public record Metric(String name, Spread a, Spread b, Verdict verdict) {
    /** NaN without a value on both sides, or one to divide by. */
    public double ratio() {
      return a == null || b == null || a.median() == 0 ? Double.NaN : b.median() / a.median();
    }
  }

  /**
   * Compares two sides.
   *
   * @param varying keys, or ends or middles of keys, of facts that may differ
   * @param maxRegression the relative change that is never held against B
   */
  public static Comparison of(Side a, Side b, List<String> varying, double maxRegression) {
    if (a.kind() != b.kind()) {
      throw new BadInputException(
          "a bench report and a run are not comparable: " + a.path() + ", " + b.path());
    }
    List<Difference> refusals = new ArrayList<>();
    List<Difference> subject = new ArrayList<>();
    Map<String, List<String>> factsA = a.facts();
    Map<String, List<String>> factsB = b.facts();
    Set<String> keys = new LinkedHashSet<>(factsA.keySet());
    keys.addAll(factsB.keySet());
    for (String wanted : varying) {
      if (keys.stream().noneMatch(key -> covers(wanted, key))) {
        throw new BadInputException("--varying " + wanted + ": neither side has such a key");
      }
    }
    for (String key : keys) {
      List<String> valuesA = factsA.getOrDefault(key, List.of());
      List<String> valuesB = factsB.getOrDefault(key, List.of());
      boolean mixed = Side.isMixed(key, valuesA) || Side.isMixed(key, valuesB);
      if (mixed || !valuesA.equals(valuesB)) {
        boolean meant = varying.stream().anyMatch(wanted -> covers(wanted, key));
        (meant ? subject : refusals).add(new Difference(key, text(valuesA), text(valuesB)));
      }
    }
    return new Comparison(
        refusals, subject, refusals.isEmpty() ? metrics(a, b, maxRegression) : List.of());
  }

  /** Whether B got worse anywhere, and where. */
  public List<String> worse() {
    return metrics.stream()
        .filter(metric -> metric.verdict() == Verdict.WORSE)
        .map(Metric::name)
        .toList();
  }

  private static boolean covers(String wanted, String key) {
    return ("." + key + ".").contains("." + wanted + ".");
  }

  private static String text(List<String> values) {
    return values.isEmpty() ? null : String.join(" / ", values);
  }

  private static List<Metric> metrics(Side a, Side b, double maxRegression) {
    Map<String, Spread> metricsA = a.metrics();
    Map<String, Spread> metricsB = b.metrics();
    Set<String> names = new TreeSet<>(metricsA.keySet());
    names.addAll(metricsB.keySet());
    return names.stream()
        .map(
            name -> {
              Spread spreadA = metricsA.get(name);
              Spread spreadB = metricsB.get(name);
              return new Metric(
                  name, spreadA, spreadB, judge(name, spreadA, spreadB, maxRegression));
            })
        .toList();
  }

  private static Verdict judge(String name, Spread a, Spread b, double maxRegression) {
    if (a == null || b == null) {
      return a == null ? Verdict.ONLY_B : Verdict.ONLY_A;
    }
    double change = relative(Math.abs(b.median() - a.median()), a, b);
    double noise = Math.max(relative(a.iqr(), a, b), relative(b.iqr(), b, a));
    if (change <= Math.max(maxRegression, noise)) {
      return Verdict.SAME;
    }
    return switch (Direction.of(name)) {
      case NEITHER -> Verdict.DIFFERS;
      case HIGHER -> b.median() > a.median() ? Verdict.BETTER : Verdict.WORSE;
      case LOWER -> b.median() < a.median() ? Verdict.BETTER : Verdict.WORSE;
    };
  }

  /** To the median of its own side; if that is 0, of the other one. Unknown is no difference. */
  private static double relative(double amount, Spread own, Spread other) {
    double scale = Math.abs(own.median() != 0 ? own.median() : other.median());
    return Double.isNaN(amount) || scale == 0 ? 0 : amount / scale;
  }
}

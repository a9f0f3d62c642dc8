package dev.millrace.config;

import java.util.Collection;
import java.util.Comparator;
import java.util.Optional;

/** The name that was probably meant. */
public final class Nearest {
  private Nearest() {}

  /**
   * The closest candidate by edit distance, if it keeps a letter and takes at most one edit for
   * every three letters of the name, or one.
   */
  public static Optional<String> of(String name, Collection<String> candidates) {
    int limit = Math.max(1, name.length() / 3);
    return candidates.stream()
        .filter(candidate -> distance(name, candidate) <= limit)
        .filter(
            candidate -> distance(name, candidate) < Math.min(name.length(), candidate.length()))
        .min(Comparator.comparingInt(candidate -> distance(name, candidate)));
  }

  /** {@code ; did you mean "x"?} or, when nothing is close, the list of what is allowed. */
  public static String hint(String name, Collection<String> candidates) {
    return of(name, candidates)
        .map(nearest -> "; did you mean \"" + nearest + "\"?")
        .orElse("; known: " + String.join(", ", candidates));
  }

  /** Insertions, deletions, substitutions and swaps of neighbours. */
  static int distance(String a, String b) {
    int[][] cost = new int[a.length() + 1][b.length() + 1];
    for (int i = 0; i <= a.length(); i++) {
      for (int j = 0; j <= b.length(); j++) {
        if (i == 0 || j == 0) {
          cost[i][j] = i + j;
          continue;
        }
        int change = a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1;
        int best = Math.min(cost[i - 1][j], cost[i][j - 1]) + 1;
        best = Math.min(best, cost[i - 1][j - 1] + change);
        boolean swapped =
            i > 1
                && j > 1
                && a.charAt(i - 1) == b.charAt(j - 2)
                && a.charAt(i - 2) == b.charAt(j - 1);
        cost[i][j] = swapped ? Math.min(best, cost[i - 2][j - 2] + 1) : best;
      }
    }
    return cost[a.length()][b.length()];
  }
}

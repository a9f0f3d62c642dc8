package dev.millrace.trace;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * The update windows of a trace, in order of their begins: each holds all updates of one tick. What
 * lies inside is overlapped with learning; the gap to the next window is time that a tick waits.
 */
final class Windows {
  private final long[] begins;
  private final long[] ends;

  /** Null is a trace without any. */
  Windows(Spans spans) {
    List<long[]> pairs = new ArrayList<>();
    for (int i = 0; spans != null && i < spans.size(); i++) {
      pairs.add(new long[] {spans.begin(i), spans.end(i)});
    }
    pairs.sort(Comparator.comparingLong(pair -> pair[0]));
    begins = pairs.stream().mapToLong(pair -> pair[0]).toArray();
    ends = pairs.stream().mapToLong(pair -> pair[1]).toArray();
  }

  int size() {
    return begins.length;
  }

  boolean contains(long begin, long end) {
    int window = lastBegunBy(begin);
    return window >= 0 && end <= ends[window];
  }

  /**
   * For each tick that began at or after a time, how many nanoseconds of its gap are covered by at
   * least one of the spans. A tick is the time from the begin of one window to that of the next.
   */
  long[] exposed(List<Spans> all, long from) {
    List<long[]> pieces = new ArrayList<>();
    for (Spans spans : all) {
      for (int i = 0; i < spans.size(); i++) {
        addPieces(spans.begin(i), spans.end(i), pieces);
      }
    }
    pieces.sort(Comparator.comparingLong(piece -> piece[0]));
    long[] covered = new long[Math.max(0, begins.length - 1)];
    long done = Long.MIN_VALUE;
    for (long[] piece : pieces) {
      long begin = Math.max(piece[0], done);
      if (piece[1] > begin) {
        covered[lastBegunBy(piece[0])] += piece[1] - begin;
        done = piece[1];
      }
    }
    int first = 0;
    while (first < covered.length && begins[first] < from) {
      first++;
    }
    return Arrays.copyOfRange(covered, first, covered.length);
  }

  /** Cuts a span into its parts inside gaps: a part lies between two neighbouring windows. */
  private void addPieces(long begin, long end, List<long[]> pieces) {
    for (int i = Math.max(0, lastBegunBy(begin)); i + 1 < begins.length && ends[i] < end; i++) {
      long from = Math.max(begin, ends[i]);
      long to = Math.min(end, begins[i + 1]);
      if (to > from) {
        pieces.add(new long[] {from, to});
      }
    }
  }

  /** The last window that began at or before a time, or -1. */
  private int lastBegunBy(long time) {
    int low = 0;
    int high = begins.length;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (begins[middle] <= time) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low - 1;
  }
}

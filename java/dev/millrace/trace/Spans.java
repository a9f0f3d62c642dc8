package dev.millrace.trace;

import java.util.Arrays;
import java.util.Set;
import java.util.TreeSet;

/** All spans of one name: begins and ends in nanoseconds, in the order of the file. */
final class Spans {
  private final Set<Track> tracks = new TreeSet<>();
  private long[] begins = new long[16];
  private long[] ends = new long[16];
  private int size;

  /** A line of a timeline: a thread or a stream. */
  record Track(long process, long thread) implements Comparable<Track> {
    @Override
    public int compareTo(Track other) {
      int order = Long.compare(process, other.process);
      return order != 0 ? order : Long.compare(thread, other.thread);
    }
  }

  void add(Track track, long begin, long end) {
    if (size == begins.length) {
      begins = Arrays.copyOf(begins, 2 * size);
      ends = Arrays.copyOf(ends, 2 * size);
    }
    begins[size] = begin;
    ends[size] = end;
    size++;
    tracks.add(track);
  }

  int size() {
    return size;
  }

  long begin(int index) {
    return begins[index];
  }

  long end(int index) {
    return ends[index];
  }

  Set<Track> tracks() {
    return tracks;
  }
}

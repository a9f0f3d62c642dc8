package dev.millrace.config;

import dev.millrace.config.YamlNode.Position;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** What is wrong with a configuration, so that all of it is said at once. */
final class Mistakes {
  /** As in the file; overrides have no lines and come last. */
  private static final Comparator<Mistake> ORDER =
      Comparator.comparing((Mistake each) -> each.at().line() == 0)
          .thenComparing(each -> each.at().line())
          .thenComparing(each -> each.at().column());

  private final List<Mistake> found = new ArrayList<>();

  private record Mistake(Position at, String text) {
    @Override
    public String toString() {
      return at + ": " + text;
    }
  }

  void add(Position at, String text) {
    found.add(new Mistake(at, text));
  }

  int count() {
    return found.size();
  }

  /** Throws if there are any: one is the message, several are lines of it. */
  void refuse() {
    List<String> lines = found.stream().distinct().sorted(ORDER).map(Mistake::toString).toList();
    if (lines.size() == 1) {
      throw new ConfigException(lines.get(0));
    }
    if (!lines.isEmpty()) {
      String all = String.join("\n  ", lines);
      throw new ConfigException(lines.size() + " mistakes in the configuration:\n  " + all);
    }
  }
}

package dev.millrace.config;

import dev.millrace.config.YamlNode.Position;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** What is wrong with a configuration, so that all of it is said at once. */
final class Mistakes {
  /** As in the file; overrides have no lines and come last. */
  private static final Comparator<Mistake> ORDER =
      Comparator.comparing((Mistake each) -> each.line() == 0)
          .thenComparing(Mistake::line)
          .thenComparing(Mistake::column);

  private final List<Mistake> found = new ArrayList<>();

  private record Mistake(Position at, String text) {
    int line() {
      return at == null ? 0 : at.line();
    }

    int column() {
      return at == null ? 0 : at.column();
    }

    @Override
    public String toString() {
      return at == null ? text : at + ": " + text;
    }
  }

  /** One at a place, which is null where that is not known. */
  void add(Position at, String text) {
    found.add(new Mistake(at, text));
  }

  int count() {
    return found.size();
  }

  /** One is the message, several are lines of it. */
  String message() {
    List<String> lines = found.stream().distinct().sorted(ORDER).map(Mistake::toString).toList();
    String all = String.join("\n  ", lines);
    return lines.size() == 1 ? all : lines.size() + " mistakes in the configuration:\n  " + all;
  }

  /** Throws if there are any. */
  void refuse() {
    if (!found.isEmpty()) {
      throw new ConfigException(message());
    }
  }
}

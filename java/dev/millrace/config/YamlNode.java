package dev.millrace.config;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a configuration text says, with the place where each part of it stands. Immutable. */
public sealed interface YamlNode {
  Position position();

  /** This node and all below it; an alias counts as often as it is used. */
  long size();

  /** Where a node stands: a file, or the override that brought it. */
  record Position(String source, int line, int column) {
    /** An override has no lines. */
    static Position of(String source) {
      return new Position(source, 0, 0);
    }

    @Override
    public String toString() {
      return line == 0 ? source : source + ":" + line + ":" + column;
    }
  }

  /** What YAML 1.2's core schema takes a scalar for. */
  enum Kind {
    NULL,
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT
  }

  record Scalar(Position position, Kind kind, String text) implements YamlNode {
    @Override
    public long size() {
      return 1;
    }
  }

  record Sequence(Position position, List<YamlNode> items) implements YamlNode {
    @Override
    public long size() {
      return 1 + items.stream().mapToLong(YamlNode::size).sum();
    }
  }

  record Mapping(Position position, Map<String, YamlNode> entries) implements YamlNode {
    @Override
    public long size() {
      return 1 + entries.values().stream().mapToLong(YamlNode::size).sum();
    }

    /**
     * This mapping with another one laid over it: mappings merge, everything else is replaced. It
     * stands where the upper one does, unless that is an override, which has no lines.
     */
    Mapping overlay(Mapping top) {
      Map<String, YamlNode> merged = new LinkedHashMap<>(entries);
      top.entries.forEach(
          (key, value) -> {
            YamlNode below = merged.get(key);
            boolean both = below instanceof Mapping && value instanceof Mapping;
            merged.put(key, both ? ((Mapping) below).overlay((Mapping) value) : value);
          });
      return new Mapping(top.position.line() == 0 ? position : top.position, merged);
    }

    /** This mapping without one key. */
    Mapping without(String key) {
      Map<String, YamlNode> rest = new LinkedHashMap<>(entries);
      rest.remove(key);
      return new Mapping(position, rest);
    }
  }
}

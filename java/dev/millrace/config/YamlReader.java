package dev.millrace.config;

import dev.millrace.config.YamlNode.Kind;
import dev.millrace.config.YamlNode.Mapping;
import dev.millrace.config.YamlNode.Position;
import dev.millrace.config.YamlNode.Scalar;
import dev.millrace.config.YamlNode.Sequence;
import dev.millrace.io.FileErrors;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.api.YamlUnicodeReader;
import org.snakeyaml.engine.v2.common.Anchor;
import org.snakeyaml.engine.v2.events.AliasEvent;
import org.snakeyaml.engine.v2.events.Event;
import org.snakeyaml.engine.v2.events.MappingStartEvent;
import org.snakeyaml.engine.v2.events.ScalarEvent;
import org.snakeyaml.engine.v2.events.SequenceStartEvent;
import org.snakeyaml.engine.v2.exceptions.Mark;
import org.snakeyaml.engine.v2.exceptions.MarkedYamlEngineException;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import org.snakeyaml.engine.v2.nodes.Tag;
import org.snakeyaml.engine.v2.parser.ParserImpl;
import org.snakeyaml.engine.v2.resolver.ScalarResolver;
import org.snakeyaml.engine.v2.scanner.StreamReader;
import org.snakeyaml.engine.v2.schema.CoreSchema;

/**
 * Reads one YAML 1.2 document (core schema) into a tree of our own, straight from the parser's
 * events: depth, size and duplicate keys are checked while the tree grows, never after. A duplicate
 * key is a mistake beside others, and counts for nothing; all else ends the reading.
 */
public final class YamlReader {
  static final int DEPTH_LIMIT = 64;
  static final int BYTE_LIMIT = 1 << 18;
  static final long NODE_LIMIT = 20_000;

  private static final ScalarResolver RESOLVER = new CoreSchema().getScalarResolver();

  private final String source;
  private final Mistakes mistakes;
  private final ParserImpl events;
  private final Map<Anchor, YamlNode> anchors = new HashMap<>();
  private long nodes;

  private YamlReader(String source, byte[] text, Mistakes mistakes) {
    this.source = source;
    this.mistakes = mistakes;
    LoadSettings settings =
        LoadSettings.builder().setLabel(source).setCodePointLimit(BYTE_LIMIT).build();
    this.events =
        new ParserImpl(
            settings,
            new StreamReader(settings, new YamlUnicodeReader(new ByteArrayInputStream(text))));
  }

  /** Reads a file; every error names it. */
  static Mapping read(Path file, Mistakes mistakes) {
    byte[] text;
    try {
      if (Files.isDirectory(file)) {
        throw new ConfigException("cannot read " + file + ": it is a folder");
      }
      if (Files.size(file) > BYTE_LIMIT) {
        throw tooLarge(file.toString());
      }
      text = Files.readAllBytes(file);
    } catch (IOException e) {
      throw new ConfigException("cannot read " + file + ": " + FileErrors.reason(e));
    }
    return mapping(file.toString(), text, mistakes);
  }

  /** Reads a text that must be a mapping; an empty one is the empty mapping. */
  static Mapping mapping(String source, byte[] text, Mistakes mistakes) {
    YamlNode root = parse(source, text, mistakes);
    if (root instanceof Mapping mapping) {
      return mapping;
    }
    if (root instanceof Scalar scalar && scalar.kind() == Kind.NULL) {
      return new Mapping(scalar.position(), Map.of());
    }
    throw new ConfigException(root.position() + ": expected keys and values");
  }

  /** Reads one document of any kind. */
  static YamlNode parse(String source, byte[] text, Mistakes mistakes) {
    if (text.length > BYTE_LIMIT) {
      throw tooLarge(source);
    }
    try {
      return new YamlReader(source, text, mistakes).document();
    } catch (MarkedYamlEngineException e) {
      String problem = e.getProblem() == null ? e.getContext() : e.getProblem();
      String place = e.getProblemMark().map(YamlReader::place).orElse("");
      throw new ConfigException(source + place + ": " + oneLine(problem));
    } catch (YamlEngineException e) {
      if (e.getCause() instanceof CharacterCodingException) {
        throw new ConfigException(source + ": is not UTF-8 text");
      }
      throw new ConfigException(source + ": " + oneLine(e.getMessage()));
    }
  }

  private static ConfigException tooLarge(String source) {
    return new ConfigException(source + ": larger than " + BYTE_LIMIT + " bytes");
  }

  private static String place(Mark mark) {
    return ":" + (mark.getLine() + 1) + ":" + (mark.getColumn() + 1);
  }

  private static String oneLine(String text) {
    return text == null ? "not valid YAML" : text.strip().replaceAll("\\s*\\R\\s*", "; ");
  }

  private YamlNode document() {
    events.next(); // stream start
    if (events.checkEvent(Event.ID.StreamEnd)) {
      return new Scalar(Position.of(source), Kind.NULL, "");
    }
    events.next(); // document start
    YamlNode root = node(0);
    events.next(); // document end
    if (!events.checkEvent(Event.ID.StreamEnd)) {
      throw new ConfigException(source + ": more than one document");
    }
    return root;
  }

  private YamlNode node(int depth) {
    Event event = events.next();
    Position position = position(event);
    if (depth > DEPTH_LIMIT) {
      throw new ConfigException(position + ": nested deeper than " + DEPTH_LIMIT + " levels");
    }
    if (event instanceof AliasEvent alias) {
      YamlNode target = anchors.get(alias.getAlias());
      if (target == null) {
        throw new ConfigException(position + ": unknown alias *" + alias.getAlias());
      }
      count(position, target.size());
      return target;
    }
    count(position, 1);
    if (event instanceof ScalarEvent scalar) {
      return anchored(scalar.getAnchor(), scalar(position, scalar));
    }
    if (event instanceof SequenceStartEvent start) {
      refuseTag(position, start.getTag());
      return anchored(start.getAnchor(), sequence(position, depth));
    }
    MappingStartEvent start = (MappingStartEvent) event;
    refuseTag(position, start.getTag());
    return anchored(start.getAnchor(), mapping(position, depth));
  }

  private Sequence sequence(Position position, int depth) {
    List<YamlNode> items = new ArrayList<>();
    while (!events.checkEvent(Event.ID.SequenceEnd)) {
      items.add(node(depth + 1));
    }
    events.next();
    return new Sequence(position, items);
  }

  private Mapping mapping(Position position, int depth) {
    Map<String, YamlNode> entries = new LinkedHashMap<>();
    while (!events.checkEvent(Event.ID.MappingEnd)) {
      if (!(node(depth + 1) instanceof Scalar key)) {
        throw new ConfigException(position + ": a key must be a plain word");
      }
      YamlNode value = node(depth + 1);
      if (entries.putIfAbsent(key.text(), value) != null) {
        mistakes.add(key.position(), "duplicate key \"" + key.text() + "\"");
      }
    }
    events.next();
    return new Mapping(position, entries);
  }

  private static Scalar scalar(Position position, ScalarEvent event) {
    refuseTag(position, event.getTag());
    if (!event.isPlain()) {
      return new Scalar(position, Kind.TEXT, event.getValue());
    }
    Tag tag = RESOLVER.resolve(event.getValue(), true);
    Kind kind = Kind.TEXT;
    if (tag.equals(Tag.NULL)) {
      kind = Kind.NULL;
    } else if (tag.equals(Tag.BOOL)) {
      kind = Kind.BOOLEAN;
    } else if (tag.equals(Tag.INT)) {
      kind = Kind.INTEGER;
    } else if (tag.equals(Tag.FLOAT)) {
      kind = Kind.NUMBER;
    }
    return new Scalar(position, kind, event.getValue());
  }

  private static void refuseTag(Position position, Optional<String> tag) {
    if (tag.isPresent()) {
      throw new ConfigException(position + ": tags (" + tag.get() + ") are not allowed");
    }
  }

  private YamlNode anchored(Optional<Anchor> anchor, YamlNode node) {
    anchor.ifPresent(name -> anchors.put(name, node));
    return node;
  }

  /** Aliases of aliases grow without bound: what they stand for is counted, not what is written. */
  private void count(Position position, long added) {
    nodes += added;
    if (nodes > NODE_LIMIT) {
      throw new ConfigException(position + ": more than " + NODE_LIMIT + " values");
    }
  }

  private Position position(Event event) {
    return event
        .getStartMark()
        .map(mark -> new Position(source, mark.getLine() + 1, mark.getColumn() + 1))
        .orElse(Position.of(source));
  }
}

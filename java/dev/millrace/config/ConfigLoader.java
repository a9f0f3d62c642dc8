package dev.millrace.config;

import dev.millrace.config.RunConfig.Profile;
import dev.millrace.config.YamlNode.Kind;
import dev.millrace.config.YamlNode.Mapping;
import dev.millrace.config.YamlNode.Position;
import dev.millrace.config.YamlNode.Scalar;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

/**
 * Resolves a configuration. Later layers win: the built-in configuration of the task, its profile,
 * the user's file, the profile in that file, the {@code -s} overrides.
 */
public final class ConfigLoader {
  /** Built-in configurations, by name. */
  public static final List<String> BUILT_IN =
      List.of(
          "cartpole_swingup",
          "cartpole_swingup_flashsac",
          "g1_walk_flat",
          "g1_walk_flat_flashsac",
          "g1_motion_tracking",
          "g1_motion_tracking_sac");

  private static final String PROFILES = "profiles";

  private ConfigLoader() {}

  /**
   * What a run uses, and how its profile was chosen.
   *
   * @param noEffect keys that were set in vain; none for what a run left behind
   * @param places where each key stands, by its path; empty if that is not known
   */
  public record Resolved(
      RunConfig config,
      Profile requested,
      String profileReason,
      List<NoEffect> noEffect,
      Map<String, Position> places) {
    public Resolved(RunConfig config, Profile requested, String profileReason) {
      this(config, requested, profileReason, List.of(), Map.of());
    }

    /** Lines that each begin with a key's path, with the place of the key before it. */
    public String placed(String message) {
      Mistakes mistakes = new Mistakes();
      message.lines().forEach(line -> mistakes.add(place(line.split(": ", 2)[0]), line));
      return mistakes.message();
    }

    /** Where a key stands, or the innermost group that would hold it; null if neither is known. */
    Position place(String path) {
      String at = path;
      while (!places.containsKey(at) && at.contains(".")) {
        at = at.substring(0, at.lastIndexOf('.'));
      }
      return places.get(at);
    }
  }

  /** Whether a GPU can be used, and why or why not; asked for only when the profile is auto. */
  public record Gpu(boolean available, String reason) {}

  /**
   * Loads a built-in configuration or a file.
   *
   * @param overrides {@code key.path=value}, values as in YAML
   */
  public static Resolved load(String nameOrFile, List<String> overrides, Supplier<Gpu> gpu) {
    Mistakes mistakes = new Mistakes();
    Mapping given = source(nameOrFile, mistakes);
    Mapping base = BUILT_IN.contains(nameOrFile) ? given : builtInFor(given, nameOrFile, mistakes);
    Mapping over = overrides(overrides, mistakes);

    Mapping named = base.overlay(given).overlay(over);
    Profile requested = profile(named, mistakes);
    Profile effective = requested;
    String reason = "requested";
    if (requested == Profile.AUTO) {
      Gpu found = gpu.get();
      effective = found.available() ? Profile.FULL : Profile.LAPTOP;
      reason = found.reason();
    }

    Layers layers = new Layers(nameOrFile, base, given, over);
    Mapping merged = merged(layers, effective, mistakes);
    RunConfig config = RecordBinder.bind(merged, RunConfig.class, mistakes);
    // A mistake in the profile that is not used would wait for another machine.
    Profile other = effective == Profile.FULL ? Profile.LAPTOP : Profile.FULL;
    RecordBinder.bind(merged(layers, other, mistakes), RunConfig.class, mistakes);
    mistakes.refuse();
    Layers builtInLayers = new Layers(nameOrFile, base, base, overrides(List.of(), mistakes));
    Mapping builtIn = merged(builtInLayers, effective, mistakes);
    List<NoEffect> noEffect =
        NoEffect.in(config, RecordBinder.bind(builtIn, RunConfig.class, mistakes));
    return new Resolved(config, requested, reason, noEffect, places(merged));
  }

  private record Layers(String nameOrFile, Mapping base, Mapping given, Mapping over) {}

  private static Mapping merged(Layers layers, Profile profile, Mistakes mistakes) {
    String source = layers.nameOrFile();
    Mapping merged =
        withProfile(layers.base(), profile, mistakes)
            .overlay(withProfile(layers.given(), profile, mistakes))
            .overlay(layers.over());
    Map<String, YamlNode> entries = new LinkedHashMap<>(merged.entries());
    entries.put("profile", new Scalar(Position.of(source), Kind.TEXT, profile.toString()));
    if (entries.get("env") instanceof Mapping env) {
      entries.put("env", withPath("motion_file", withPath("model_file", env, source), source));
    }
    return new Mapping(merged.position(), entries);
  }

  private static Map<String, Position> places(Mapping root) {
    Map<String, Position> places = new LinkedHashMap<>();
    root.entries().forEach((key, node) -> addPlaces(key, node, places));
    return Collections.unmodifiableMap(places);
  }

  private static void addPlaces(String path, YamlNode node, Map<String, Position> places) {
    places.put(path, node.position());
    if (node instanceof Mapping mapping) {
      mapping.entries().forEach((key, each) -> addPlaces(path + "." + key, each, places));
    }
  }

  /** {@link #resolveAgain} without the places. */
  public static RunConfig reload(Path file, List<String> overrides) {
    return resolveAgain(file, overrides).config();
  }

  /** Reads the complete configuration that a run left behind; only a few keys may change then. */
  public static Resolved resolveAgain(Path file, List<String> overrides) {
    Mistakes mistakes = new Mistakes();
    Mapping over = overrides(overrides, mistakes);
    for (String key : over.entries().keySet()) {
      if (!List.of("run", "log", "checkpoint").contains(key)) {
        throw new ConfigException(
            "-s " + key + "…: a resumed run can change run, log and checkpoint only");
      }
    }
    Mapping merged = YamlReader.read(file, mistakes).overlay(over);
    RunConfig config = RecordBinder.bind(merged, RunConfig.class, mistakes);
    mistakes.refuse();
    String reason = "as in " + file.getFileName();
    return new Resolved(config, config.profile(), reason, List.of(), places(merged));
  }

  /** A configuration as nested maps with its own key names, as the native core reads it. */
  public static Map<String, Object> tree(RunConfig config) {
    return RecordBinder.tree(config);
  }

  private static Mapping source(String nameOrFile, Mistakes mistakes) {
    if (BUILT_IN.contains(nameOrFile)) {
      return builtIn(nameOrFile);
    }
    Path file = Path.of(nameOrFile);
    boolean looksLikeName = nameOrFile.matches("[A-Za-z0-9_]+");
    if (nameOrFile.isEmpty() || (looksLikeName && !Files.exists(file))) {
      throw new ConfigException(
          "no built-in configuration \""
              + nameOrFile
              + "\" and no such file"
              + Nearest.hint(nameOrFile, BUILT_IN));
    }
    return YamlReader.read(file, mistakes);
  }

  private static Mapping builtIn(String name) {
    String resource = "configs/" + name + ".yaml";
    try (InputStream in = ConfigLoader.class.getClassLoader().getResourceAsStream(resource)) {
      if (in == null) {
        throw new IllegalStateException("not packed: " + resource);
      }
      Mistakes mistakes = new Mistakes();
      Mapping mapping = YamlReader.mapping(name, in.readAllBytes(), mistakes);
      mistakes.refuse();
      return mapping;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * The built-in configuration that a file adapts: that of its task and, if named, algorithm. Where
   * there is none, what all of the task or at all have together: enough to find other mistakes.
   */
  private static Mapping builtInFor(Mapping given, String file, Mistakes mistakes) {
    String task = text(given, "task");
    String algo = text(given, "algo");
    Set<String> tasks = new LinkedHashSet<>(); // several algorithms share one
    Set<String> algos = new LinkedHashSet<>();
    Mapping ofTask = new Mapping(given.position(), Map.of());
    Mapping ofAll = ofTask;
    for (String name : BUILT_IN) {
      Mapping candidate = builtIn(name);
      tasks.add(text(candidate, "task"));
      ofAll = ofAll.overlay(candidate);
      if (text(candidate, "task").equals(task)) {
        String its = text(candidate, "algo");
        if (algo == null || algo.equals(its)) {
          return candidate;
        }
        algos.add(its);
        ofTask = ofTask.overlay(candidate);
      }
    }
    if (!given.entries().containsKey("task")) {
      mistakes.add(Position.of(file), "task is missing");
    } else if (task != null && algos.isEmpty()) {
      String hint = Nearest.hint(task, tasks);
      mistakes.add(position(given, "task"), "task: unknown task \"" + task + "\"" + hint);
    } else if (task != null) {
      String has = "algo: task " + task + " has no \"" + algo + "\"";
      mistakes.add(position(given, "algo"), has + Nearest.hint(algo, algos));
    }
    return algos.isEmpty() ? ofAll : ofTask;
  }

  private static Position position(Mapping root, String key) {
    return root.entries().get(key).position();
  }

  /** A path named in a file stands relative to that file; in an override, to where we are. */
  private static Mapping withPath(String key, Mapping env, String file) {
    if (!(env.entries().get(key) instanceof Scalar named)
        || named.kind() == Kind.NULL
        || named.text().indexOf('\0') >= 0) { // no path: the binder refuses it
      return env;
    }
    Path folder =
        named.position().source().equals(file)
            ? Path.of(file).toAbsolutePath().getParent()
            : Path.of("").toAbsolutePath();
    String path = folder.resolve(named.text()).normalize().toString();
    Scalar absolute = new Scalar(named.position(), Kind.TEXT, path);
    return env.overlay(new Mapping(env.position(), Map.of(key, absolute)));
  }

  private static Mapping withProfile(Mapping root, Profile profile, Mistakes mistakes) {
    Mapping plain = root.without(PROFILES);
    YamlNode profiles = root.entries().get(PROFILES);
    if (profiles == null) {
      return plain;
    }
    if (!(profiles instanceof Mapping byName)) {
      mistakes.add(profiles.position(), "profiles: expected full and laptop");
      return plain;
    }
    List<String> known = List.of("full", "laptop");
    byName
        .entries()
        .forEach(
            (name, overlay) -> {
              String path = "profiles." + name;
              if (!known.contains(name)) {
                String hint = Nearest.hint(name, known);
                mistakes.add(overlay.position(), "unknown key " + path + hint);
              } else if (!(overlay instanceof Mapping)) {
                String got = RecordBinder.got(overlay);
                mistakes.add(overlay.position(), path + ": expected a group of keys, got " + got);
              }
            });
    return byName.entries().get(profile.toString()) instanceof Mapping overlay
        ? plain.overlay(overlay)
        : plain;
  }

  /** What is named; any if that is none. */
  private static Profile profile(Mapping root, Mistakes mistakes) {
    YamlNode node = root.entries().getOrDefault("profile", root);
    for (Profile profile : Profile.values()) {
      if (node instanceof Scalar scalar && scalar.text().equals(profile.toString())) {
        return profile;
      }
    }
    mistakes.add(
        node.position(),
        "profile: expected one of auto, full, laptop, got " + RecordBinder.got(node));
    return Profile.LAPTOP;
  }

  private static Mapping overrides(List<String> overrides, Mistakes mistakes) {
    Mapping all = new Mapping(Position.of("-s"), Map.of());
    for (String override : overrides) {
      all = all.overlay(override(override, mistakes));
    }
    return all;
  }

  private static Mapping override(String text, Mistakes mistakes) {
    int equals = text.indexOf('=');
    String source = "-s " + text;
    if (equals < 1) {
      throw new ConfigException(source + ": expected key.path=value");
    }
    byte[] given = text.substring(equals + 1).getBytes(StandardCharsets.UTF_8);
    YamlNode value = unplaced(YamlReader.parse(source, given, mistakes), Position.of(source));
    List<String> path = List.of(text.substring(0, equals).split("\\.", -1));
    if (path.contains("") || path.size() > YamlReader.DEPTH_LIMIT) {
      throw new ConfigException(source + ": \"" + text.substring(0, equals) + "\" is no key path");
    }
    for (int i = path.size() - 1; i >= 0; i--) {
      value = new Mapping(Position.of(source), Collections.singletonMap(path.get(i), value));
    }
    return (Mapping) value;
  }

  /** Line and column mean nothing for an override. */
  private static YamlNode unplaced(YamlNode node, Position position) {
    if (node instanceof Scalar scalar) {
      return new Scalar(position, scalar.kind(), scalar.text());
    }
    if (node instanceof Mapping mapping) {
      Map<String, YamlNode> entries = new LinkedHashMap<>();
      mapping.entries().forEach((key, each) -> entries.put(key, unplaced(each, position)));
      return new Mapping(position, entries);
    }
    return node;
  }

  private static String text(Mapping root, String key) {
    return root.entries().get(key) instanceof Scalar scalar && scalar.kind() != Kind.NULL
        ? scalar.text().toLowerCase(Locale.ROOT)
        : null;
  }
}

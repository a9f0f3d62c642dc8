package dev.millrace.manifest;

import dev.millrace.core.Json;
import dev.millrace.io.AtomicFile;
import dev.millrace.io.FileErrors;
import dev.millrace.io.FileOps;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * What a run was: filled in while it happens, written atomically when it ends, also when it fails.
 * Every section exists from the start, so a manifest is valid whenever it is written.
 */
public final class Manifest {
  private static final int SCHEMA = 1;
  private static final String ROOM = "." + Artifacts.MANIFEST + ".room";
  private static final int ROOM_BYTES = 256 << 10; // some times the size of a long manifest
  private static final List<String> OBJECTS =
      List.of(
          "run",
          "build",
          "config",
          "device",
          "preflight",
          "carriers",
          "rng",
          "budget",
          "replay",
          "graphs",
          "selection",
          "training");

  private final ObjectNode root = Json.object();

  public Manifest() {
    root.put("schema", SCHEMA);
    for (String name : OBJECTS) {
      root.putObject(name);
    }
    root.putArray("carriers");
    root.putArray("artifacts");
    root.putNull("error");
    section("run").put("started_at", Instant.now().toString()).put("status", "running");
  }

  /** A section to fill in. */
  public ObjectNode section(String name) {
    return (ObjectNode) root.get(name);
  }

  /** Takes over whole sections; what is not there is left as it is. */
  public void take(JsonNode facts, List<String> names) {
    for (String name : names) {
      JsonNode value = facts.get(name);
      if (value != null && !value.isNull()) {
        root.set(name, value.deepCopy());
      }
    }
  }

  /** Adds or replaces the entries of a section. */
  public void merge(String name, JsonNode entries) {
    if (entries instanceof ObjectNode object) {
      section(name).setAll(object);
    }
  }

  /** How the run ended: {@code completed}, {@code stopped} or {@code failed}. */
  public void end(String status, String reason) {
    section("run")
        .put("ended_at", Instant.now().toString())
        .put("status", status)
        .put("reason", reason);
  }

  public void error(JsonNode error) {
    root.set("error", error);
  }

  public JsonNode tree() {
    return root;
  }

  /** Keeps room for the manifest, so that a run that fills the disk says how it ended, too. */
  public static void reserve(Path directory) throws IOException {
    AtomicFile.write(FileOps.SYSTEM, directory.resolve(ROOM), new byte[ROOM_BYTES]);
  }

  /** Lists the artifacts and writes {@code manifest.json} where room was kept for it. */
  public void write(Path directory) throws IOException {
    try {
      Files.deleteIfExists(directory.resolve(ROOM));
      root.set("artifacts", Artifacts.list(directory));
    } catch (IOException e) {
      throw FileErrors.cannot("list the artifacts of", directory, e);
    }
    AtomicFile.write(FileOps.SYSTEM, directory.resolve(Artifacts.MANIFEST), Json.prettyBytes(root));
  }

  /** Removes the manifest of a run that goes on: it says how a run ended. */
  public static void withdraw(Path directory) throws IOException {
    Path file = directory.resolve(Artifacts.MANIFEST);
    try {
      Files.deleteIfExists(file);
    } catch (IOException e) {
      throw FileErrors.cannot("remove", file, e);
    }
  }

  /** Every place where two manifests differ, as {@code path: a | b}. */
  public static List<Difference> differences(JsonNode a, JsonNode b) {
    List<Difference> differences = new ArrayList<>();
    compare("", a, b, differences);
    return differences;
  }

  /** One differing value; an empty text is a value that is not there. */
  public record Difference(String path, String first, String second) {}

  private static void compare(String path, JsonNode a, JsonNode b, List<Difference> out) {
    if (a != null && b != null && a.isObject() && b.isObject()) {
      List<String> names = new ArrayList<>(a.propertyNames());
      b.propertyNames().stream().filter(name -> !names.contains(name)).forEach(names::add);
      for (String name : names) {
        compare(path.isEmpty() ? name : path + "." + name, a.get(name), b.get(name), out);
      }
    } else if (a != null && b != null && a.isArray() && b.isArray()) {
      for (int i = 0; i < Math.max(a.size(), b.size()); i++) {
        compare(path + "[" + i + "]", a.get(i), b.get(i), out);
      }
    } else if (a == null || !a.equals(b)) {
      out.add(new Difference(path, a == null ? "" : a.toString(), b == null ? "" : b.toString()));
    }
  }
}

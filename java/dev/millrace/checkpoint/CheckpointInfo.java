package dev.millrace.checkpoint;

import dev.millrace.core.Json;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import tools.jackson.databind.JsonNode;

/**
 * What checkpoint.json says: how far the run was, and the files with their SHA-256. It is written
 * last, so a folder that has one has everything.
 *
 * @param configSha256 of the config.yaml that the run began with; "" where that is not known
 */
public record CheckpointInfo(
    long tick,
    long envSteps,
    long updates,
    double trainingSeconds,
    String configSha256,
    List<StoredFile> files) {
  static final String STATE = "state.safetensors";
  static final String REPLAY = "replay.safetensors";
  private static final int SCHEMA = 1;

  /** One file of the folder. */
  public record StoredFile(String name, long bytes, String sha256) {}

  public CheckpointInfo {
    files = List.copyOf(files);
  }

  public boolean hasReplay() {
    return files.stream().anyMatch(file -> file.name().equals(REPLAY));
  }

  CheckpointInfo withoutReplay() {
    List<StoredFile> rest = files.stream().filter(file -> !file.name().equals(REPLAY)).toList();
    return new CheckpointInfo(tick, envSteps, updates, trainingSeconds, configSha256, rest);
  }

  byte[] encode() {
    return Json.prettyBytes(
        Json.object()
            .put("schema", SCHEMA)
            .put("tick", tick)
            .put("env_steps", envSteps)
            .put("updates", updates)
            .put("training_seconds", trainingSeconds)
            .put("config_sha256", configSha256)
            .set("files", Json.tree(files)));
  }

  /** Throws {@link CheckpointException} for anything but a complete, sane description. */
  static CheckpointInfo decode(String text) {
    JsonNode root;
    try {
      root = Json.parse(text);
    } catch (IllegalArgumentException e) {
      throw new CheckpointException("checkpoint.json: " + e.getMessage(), e);
    }
    if (whole(root, "schema") != SCHEMA) {
      throw new CheckpointException("checkpoint.json: schema is not " + SCHEMA);
    }
    List<StoredFile> files = new ArrayList<>();
    JsonNode entries = root.path("files");
    for (JsonNode entry : entries) {
      String name = entry.path("name").asString("");
      if (!List.of(STATE, REPLAY).contains(name)) {
        throw new CheckpointException("checkpoint.json: unknown file \"" + name + "\"");
      }
      String sha256 = entry.path("sha256").asString("");
      files.add(new StoredFile(name, whole(entry, "bytes"), sha256));
    }
    if (files.stream().filter(file -> file.name().equals(STATE)).count() != 1) {
      throw new CheckpointException("checkpoint.json: " + STATE + " is not listed");
    }
    return new CheckpointInfo(
        whole(root, "tick"),
        whole(root, "env_steps"),
        whole(root, "updates"),
        seconds(root, "training_seconds"),
        root.path("config_sha256").asString(""),
        files);
  }

  private static long whole(JsonNode node, String key) {
    JsonNode value = node.path(key);
    if (!value.isIntegralNumber() || !value.canConvertToLong() || value.asLong() < 0) {
      throw notA("whole number", key, value);
    }
    return value.asLong();
  }

  private static double seconds(JsonNode node, String key) {
    JsonNode value = node.path(key);
    double seconds = value.isNumber() ? value.asDouble(Double.NaN) : Double.NaN;
    if (!Double.isFinite(seconds) || seconds < 0) {
      throw notA("finite number", key, value);
    }
    return seconds;
  }

  private static CheckpointException notA(String kind, String key, JsonNode value) {
    String got = value.isMissingNode() ? "missing" : value.toString();
    return new CheckpointException(
        "checkpoint.json: " + key + " is not a " + kind + " from 0: " + got);
  }

  /** What the program needs to know when it writes one. */
  public record Progress(
      long tick, long envSteps, long updates, double trainingSeconds, String configSha256) {
    CheckpointInfo with(Map<String, SafetensorsWriter.Written> files) {
      List<StoredFile> stored = new ArrayList<>();
      files.forEach(
          (name, written) -> stored.add(new StoredFile(name, written.bytes(), written.sha256())));
      return new CheckpointInfo(tick, envSteps, updates, trainingSeconds, configSha256, stored);
    }
  }
}

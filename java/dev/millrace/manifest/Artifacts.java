package dev.millrace.manifest;

import dev.millrace.core.Json;
import dev.millrace.io.FileErrors;
import dev.millrace.io.Sha256;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/** The files of a run directory with their size and SHA-256, for the manifest and against it. */
final class Artifacts {
  static final String MANIFEST = "manifest.json";

  private Artifacts() {}

  /** Everything but the manifest itself and what unfinished writers left. */
  static ArrayNode list(Path directory) throws IOException {
    ArrayNode artifacts = Json.object().putArray("artifacts");
    List<Path> files;
    try (Stream<Path> tree = Files.walk(directory)) {
      files = tree.filter(Files::isRegularFile).sorted().toList();
    }
    for (Path file : files) {
      Path relative = directory.relativize(file);
      boolean hidden = false;
      for (Path part : relative) {
        hidden |= part.toString().startsWith(".");
      }
      if (hidden || relative.toString().equals(MANIFEST)) {
        continue;
      }
      ObjectNode entry = artifacts.addObject();
      entry.put("path", relative.toString());
      entry.put("bytes", Files.size(file));
      entry.put("sha256", Sha256.of(file));
    }
    return artifacts;
  }

  /** One line for each file that is missing or not what the manifest says. */
  static List<String> differences(Path directory, JsonNode artifacts) {
    List<String> problems = new ArrayList<>();
    for (JsonNode entry : artifacts) {
      String name = entry.path("path").asString("");
      if (name.indexOf('\0') >= 0) {
        problems.add(name.replace("\0", "\\0") + ": no file has such a name");
        continue;
      }
      Path file = directory.resolve(name).normalize();
      if (!file.startsWith(directory.normalize())) {
        problems.add(name + ": leads out of the run directory");
        continue;
      }
      try {
        if (Files.size(file) != entry.path("bytes").asLong(-1)) {
          problems.add(name + ": " + Files.size(file) + " bytes, not " + entry.path("bytes"));
        } else if (!Sha256.of(file).equals(entry.path("sha256").asString(""))) {
          problems.add(name + ": changed (SHA-256 differs)");
        }
      } catch (IOException e) {
        problems.add(name + ": " + FileErrors.reason(e));
      }
    }
    return problems;
  }
}

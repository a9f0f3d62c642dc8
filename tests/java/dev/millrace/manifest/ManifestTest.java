package dev.millrace.manifest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.core.Json;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

class ManifestTest {
  @TempDir Path folder;

  static Manifest filled() {
    Manifest manifest = new Manifest();
    manifest.merge(
        "run",
        Json.parse(
            """
            {"id": "x", "task": "t", "algo": "a", "seed": 1,
             "profile": {"requested": "auto", "effective": "laptop", "reason": "no GPU"}}"""));
    manifest.merge("build", Json.parse("{\"version\": \"1\", \"java\": \"j\", \"system\": \"s\"}"));
    manifest.merge(
        "config",
        Json.parse(
            """
            {"task": "t", "algo": "a", "seed": 1, "run": {}, "env": {}, "rewards": {},
             "replay": {}, "learner": {}}"""));
    manifest.merge(
        "device",
        Json.parse("{\"requested\": \"auto\", \"effective\": \"cpu\", \"reason\": \"r\"}"));
    manifest.section("preflight").putArray("findings");
    manifest.merge(
        "replay",
        Json.parse(
            """
            {"pipeline": "device_resident", "capacity_rows": 1, "row_bytes": 1,
             "row_stride_bytes": 1, "ingress_depth": 1, "host_bytes": 1, "device_bytes": 1,
             "published": 1, "submitted": 1, "committed": 1, "backpressure_waits": 0,
             "ring_wraps": 0}"""));
    manifest.merge(
        "training",
        Json.parse(
            """
            {"ticks": 1, "env_steps": 1, "updates": 1, "return_mean": null,
             "episode_length_mean": 2.5, "env_steps_per_s": 1, "updates_per_s": 0}"""));
    manifest.end("completed", "max_ticks");
    return manifest;
  }

  private static List<String> errorsAfter(Consumer<ObjectNode> change) {
    ObjectNode tree = (ObjectNode) filled().tree().deepCopy();
    change.accept(tree);
    return ManifestVerifier.schemaErrors(tree);
  }

  @Test
  void aCompleteManifestIsValid() {
    assertEquals(List.of(), errorsAfter(tree -> {}));
  }

  @Test
  void everyTopLevelKeyIsRequired() {
    for (String key : filled().tree().propertyNames()) {
      List<String> errors = errorsAfter(tree -> tree.remove(key));
      assertTrue(errors.stream().anyMatch(error -> error.contains(key)), key + ": " + errors);
    }
    assertFalse(errorsAfter(tree -> tree.put("extra", 1)).isEmpty());
  }

  @Test
  void wrongValuesAreFound() {
    assertFalse(errorsAfter(tree -> tree.put("schema", 2)).isEmpty());
    assertFalse(errorsAfter(tree -> section(tree, "replay").put("host_bytes", -1)).isEmpty());
    assertFalse(errorsAfter(tree -> section(tree, "replay").remove("committed")).isEmpty());
    assertFalse(errorsAfter(tree -> section(tree, "training").put("ticks", "7")).isEmpty());
    assertFalse(errorsAfter(tree -> section(tree, "run").put("status", "running")).isEmpty());
    assertFalse(errorsAfter(tree -> section(tree, "run").put("status", "failed")).isEmpty());
    assertFalse(errorsAfter(tree -> section(tree, "device").put("effective", "auto")).isEmpty());
  }

  private static ObjectNode section(ObjectNode tree, String name) {
    return (ObjectNode) tree.get(name);
  }

  @Test
  void aFailedRunHasAnErrorAndNeedsNoMore() {
    Manifest manifest = filled();
    manifest.section("replay").removeAll();
    manifest.section("training").removeAll();
    manifest.end("failed", "broke");
    manifest.error(
        Json.parse("{\"operation\": \"o\", \"code\": \"device\", \"message\": \"broke\"}"));
    assertEquals(List.of(), ManifestVerifier.schemaErrors(manifest.tree()));
  }

  @Test
  void filesAreCheckedAgainstTheirHashes() throws IOException {
    Files.writeString(folder.resolve("metrics.csv"), "tick\n1\n");
    Files.createDirectories(folder.resolve("tb"));
    Files.writeString(folder.resolve("tb/events"), "e");
    Files.createDirectories(folder.resolve("checkpoints/.partial-tick-1"));
    Files.writeString(folder.resolve("checkpoints/.partial-tick-1/x"), "unfinished");
    filled().write(folder);
    assertEquals(2, ManifestVerifier.read(folder).path("artifacts").size());
    assertEquals(List.of(), ManifestVerifier.verify(folder));
    Files.writeString(folder.resolve("metrics.csv"), "tick\n2\n");
    Files.delete(folder.resolve("tb/events"));
    assertEquals(
        List.of("metrics.csv: changed (SHA-256 differs)", "tb/events: no such file or folder"),
        ManifestVerifier.verify(folder));
  }

  @Test
  void whatIsWrongWithAForeignManifestNamesTheFile() throws IOException {
    Path file = Files.writeString(folder.resolve("manifest.json"), "{\"a\": 1, \"run\": 3}");
    for (Path named : List.of(file, folder)) {
      List<String> problems = ManifestVerifier.verify(named);
      assertTrue(
          problems.contains(file + ": required property 'schema' not found"), () -> "" + problems);
      assertTrue(
          problems.contains(file + ": /run: integer found, object expected"), () -> "" + problems);
      assertTrue(problems.stream().allMatch(each -> each.startsWith(file + ": ")));
    }
  }

  @Test
  void anArtifactCannotLeadElsewhere() {
    JsonNode artifacts = Json.parse("[{\"path\": \"../x\", \"bytes\": 1, \"sha256\": \"\"}]");
    assertEquals(
        List.of("../x: leads out of the run directory"), Artifacts.differences(folder, artifacts));
  }

  @Test
  void anArtifactOfAnotherKindIsAProblem() throws IOException {
    Files.writeString(folder.resolve("f"), "e");
    for (String bytes : List.of("\"x\"", "12345678901234567890123", "[]")) {
      JsonNode artifacts = Json.parse("[{\"path\": \"f\", \"bytes\": " + bytes + "}]");
      assertEquals(List.of("f: 1 bytes, not " + bytes), Artifacts.differences(folder, artifacts));
    }
    JsonNode artifacts = Json.parse("[{\"path\": \"a\\u0000\", \"bytes\": 1}, 3]");
    List<String> problems = Artifacts.differences(folder, artifacts);
    assertEquals("a\\0: no file has such a name", problems.get(0));
    assertEquals(2, problems.size());
  }

  @Test
  void differencesNameTheirPath() {
    JsonNode a = Json.parse("{\"x\": {\"y\": 1, \"z\": [1, 2]}, \"only\": true}");
    JsonNode b = Json.parse("{\"x\": {\"y\": 2, \"z\": [1]}, \"new\": \"n\"}");
    assertEquals(
        List.of(
            new Manifest.Difference("x.y", "1", "2"),
            new Manifest.Difference("x.z[1]", "2", ""),
            new Manifest.Difference("only", "true", ""),
            new Manifest.Difference("new", "", "\"n\"")),
        Manifest.differences(a, b));
    assertEquals(List.of(), Manifest.differences(a, a));
  }
}

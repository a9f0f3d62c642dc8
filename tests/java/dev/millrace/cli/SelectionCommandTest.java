package dev.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.checkpoint.FakeEngine;
import dev.millrace.core.Json;
import dev.millrace.manifest.ManifestVerifier;
import dev.millrace.run.FakeCore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

/** Selections from the core to the manifest and the screen, and what {@code bench graphs} shows. */
class SelectionCommandTest extends CommandLineTest<FakeCore> {
  SelectionCommandTest() {
    super(new FakeCore());
  }

  private static final String SELECTION =
      """
      {"way": "graph", "reason": "it gains 50.0 % against eager, 3.0 % are needed",
       "source": "measured", "not_cached": "it was not measured before", "profile_ms": 31.5,
       "profiles": 1, "key": {"shapes": "batch 16, envs 4", "device": "H200"},
       "measured": [
         {"way": "eager", "median_us": 100.0, "p99_us": 120.0, "mad_us": 1.0, "rounds": 30},
         {"way": "graph", "median_us": 50.0, "p99_us": 60.0, "mad_us": 0.5, "rounds": 30}],
       "drift": {"windows": 0, "reason": ""}, "cache_file": "selection.json"}""";

  private int train(String name, String... more) {
    List<String> args = new java.util.ArrayList<>(List.of("train", "cartpole_swingup"));
    args.addAll(List.of("--out", folder.resolve(name).toString(), "-srun.max_ticks=20"));
    args.addAll(List.of(more));
    return run(args.toArray(String[]::new));
  }

  private String opened() {
    return core.opened.get(core.opened.size() - 1).path("selection_path").asString("?");
  }

  private void assertShown(String what) {
    assertEquals(0, run("selection", "show", what), () -> err);
    assertTrue(
        out.contains("update   graph  yes       50.000   60.000   0.500      30  batch 16"), out);
    assertTrue(out.contains("it gains 50.0 % against eager"), out);
    assertEquals(0, run("selection", "show", what, "--json"), () -> err);
    JsonNode shown = Json.parse(out).path("selections").get(0);
    assertEquals("update", shown.path("program").asString());
    assertEquals(50.0, shown.path("measured").get(1).path("median_us").asDouble());
    assertEquals("H200", shown.path("key").path("device").asString());
  }

  @Test
  void aRunSaysWhatWasSelectedAndTheManifestKeepsIt() throws IOException {
    core.engines = () -> new FakeEngine(1).selecting("update", Json.parse(SELECTION));
    assertEquals(0, train("a"), () -> err);
    assertTrue(
        out.contains(
            "selection update: graph (it gains 50.0 % against eager, 3.0 % are needed; measured,"
                + " profiled for 32 ms)"),
        out);
    Path run = folder.resolve("a");
    assertEquals(List.of(), ManifestVerifier.verify(run));
    assertEquals(
        Json.parse(SELECTION), ManifestVerifier.read(run).path("selection").path("update"));
    assertShown(run.toString());
  }

  @Test
  void theHelpSaysWhatAGainMustBe() {
    assertEquals(0, run("selection", "show", "--help"));
    String text = out.replaceAll("\\s+", " ");
    assertTrue(text.contains("only if it gains more than 3 % and more than twice"), out);
  }

  @Test
  void theCacheLiesBesideTheRunOrWhereItIsConfigured() {
    assertEquals(0, train("a"), () -> err);
    assertEquals(folder.resolve("selection.json").toString(), opened());
    assertEquals(0, train("b", "-sselection_cache=/tmp/s.json"), () -> err);
    assertEquals("/tmp/s.json", opened());
    assertEquals(0, train("c", "-sselection_cache=none"), () -> err);
    assertEquals("", opened());
  }

  @Test
  void aCacheIsShownAndAnythingElseIsRefused() throws IOException {
    Path cache = folder.resolve("selection.json");
    Files.writeString(
        cache,
        "{\"schema\": 1, \"selections\": [{\"name\": \"update\", \"key\": {\"shapes\":"
            + " \"batch 16\", \"device\": \"H200\"}, \"selection\": "
            + SELECTION
            + ", \"measured_at\": 1, \"used_at\": 1}]}");
    assertShown(cache.toString());
    Files.writeString(cache, "{}");
    assertEquals(2, run("selection", "show", cache.toString()));
    assertTrue(err.contains("neither a manifest nor a selection cache"), err);
    assertEquals(2, run("selection", "show", folder.resolve("none.json").toString()));
    Files.writeString(cache, "{\"schema\": 1, \"selections\": []}");
    assertEquals(0, run("selection", "show", cache.toString()));
    assertTrue(out.contains("nothing was measured"), out);
  }

  @Test
  void whatIsNoSelectionIsNamed() throws IOException {
    Path cache = folder.resolve("selection.json");
    for (String[] each :
        new String[][] {
          {"{\"selections\": [{\"name\": \"x\"}]}", "selections[0].selection"},
          {"{\"selections\": [3]}", "selections[0].selection"},
          {"{\"selection\": {\"a\": 5}}", "selection.a"}
        }) {
      Files.writeString(cache, each[0]);
      assertEquals(2, run("selection", "show", cache.toString()), () -> err);
      String expected = cache + ": " + each[1] + ": expected what was measured of a program";
      assertEquals("millrace: " + expected + "\n", err);
      assertEquals("", out);
    }
  }

  @Test
  void aDamagedCacheHidesNoOther() throws IOException {
    List<String> contents =
        List.of(
            "{",
            "{\"selections\": [{\"name\": \"update\", \"selection\": {}}, 3]}",
            "{\"selections\": [{\"name\": \"update\", \"selection\": " + SELECTION + "}]}");
    for (int i = 0; i < contents.size(); i++) {
      Path task = Files.createDirectories(folder.resolve("task" + i));
      Files.writeString(task.resolve("selection.json"), contents.get(i));
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    JsonNode shown =
        SelectionCommand.Show.below(folder, new PrintStream(bytes, true, StandardCharsets.UTF_8));
    assertEquals(1, shown.size(), shown.toString());
    assertEquals("graph", shown.get(0).path("way").asString());
    List<String> skipped = bytes.toString(StandardCharsets.UTF_8).lines().toList();
    assertEquals(2, skipped.size(), skipped.toString());
    String task = "skipped " + folder.resolve("task");
    assertTrue(skipped.get(0).startsWith(task + "0/selection.json:1:2: not valid JSON: "));
    assertTrue(skipped.get(1).startsWith(task + "1/selection.json: selections[1].selection: "));
  }

  @Test
  void benchGraphsPassesItsOptionsOnAndShowsEveryWay() {
    core.report.set(
        "cases",
        Json.parse(
            """
            [{"name": "one_host_scalar", "ways": {
               "eager": {"median_us": 1393.0, "p99_us": 1400.0, "coverage": 0.0,
                         "copied_bytes_per_run": 84, "setup_ms": 1.0, "device_bytes": 0,
                         "reason": ""},
               "graph": {"median_us": 1394.0, "p99_us": 1400.0, "coverage": 0.0,
                         "copied_bytes_per_run": 84, "setup_ms": 1.0, "device_bytes": 0,
                         "reason": "BY_VALUE_VARYING: op 206"}}}]"""));
    core.report.set(
        "many_shapes",
        Json.parse(
            """
            {"traffic": [{"name": "all_in_turn", "ways": {
               "scg": {"median_us": 5.0, "p99_us": 6.0, "captures": 16}},
               "residency": {"reason": "only 8 fit"}}]}"""));
    core.report.set("break_even", Json.parse("{\"from_bytes\": 65536}"));
    assertEquals(
        0,
        run("bench graphs --device cuda --case many_shapes --rounds 12 --input-mib 7".split(" ")),
        () -> err);
    assertTrue(out.contains("one_host_scalar  graph  1,394.000"), out);
    assertTrue(out.contains("BY_VALUE_VARYING: op 206"), out);
    assertTrue(out.contains("only 8 fit"), out);
    assertTrue(out.contains("from_bytes  65,536"), out);
    assertEquals(0, run("bench", "graphs", "--json", "--rounds", "12", "--input-mib", "7"));
    JsonNode request = Json.parse(out).path("request");
    assertEquals("graphs", request.path("kind").asString());
    assertEquals("cpu", request.path("backend").asString());
    assertEquals(12, request.path("rounds").asInt());
    assertEquals(7, request.path("input_mib").asInt());
    core.report.putArray("cases");
    assertEquals(0, run("bench", "graphs", "--case", "many_shapes"), () -> err);
    assertFalse(out.contains("coverage"), "a table without a row: " + out);
  }
}

package dev.millrace.run;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.checkpoint.Checkpoint;
import dev.millrace.checkpoint.FakeEngine;
import dev.millrace.config.ConfigLoader;
import dev.millrace.config.ConfigLoader.Gpu;
import dev.millrace.config.ConfigLoader.Resolved;
import dev.millrace.manifest.ManifestVerifier;
import dev.millrace.preflight.Preflight;
import dev.millrace.preflight.PreflightReport;
import dev.millrace.progress.Progress;
import dev.millrace.progress.Status;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

class RunTest {
  @TempDir Path folder;
  private final FakeCore core = new FakeCore();
  private final List<Status> shown = new ArrayList<>();
  private final List<String> notes = new ArrayList<>();

  private final Progress progress =
      new Progress() {
        @Override
        public void update(Status status) {
          shown.add(status);
        }

        @Override
        public void note(String line) {
          notes.add(line);
        }

        @Override
        public void finish() {}
      };

  private static Resolved config(String... overrides) {
    List<String> all = new ArrayList<>(List.of("log.interval_ticks=10", "run.max_seconds=0"));
    all.addAll(List.of(overrides));
    return ConfigLoader.load("cartpole_swingup", all, () -> new Gpu(false, "no GPU"));
  }

  private PreflightReport report(Resolved resolved) {
    return Preflight.run(core, resolved);
  }

  private Outcome train(String name, String... overrides) {
    Resolved resolved = config(overrides);
    try (StopSignal signal = StopSignal.install()) {
      RunDirectory directory = new RunDirectory(folder.resolve(name));
      return new Run(core, resolved, directory, progress, signal).train(report(resolved));
    }
  }

  private Outcome resume(String name, String... overrides) {
    return resume(name, progress, overrides);
  }

  private Outcome resume(String name, Progress progress, String... overrides) {
    RunDirectory directory = RunDirectory.existing(folder.resolve(name));
    var config = ConfigLoader.reload(directory.config(), List.of(overrides));
    Resolved resolved = new Resolved(config, config.profile(), "as in config.yaml");
    try (StopSignal signal = StopSignal.install();
        Checkpoint checkpoint = directory.checkpoints().newest().checkpoint().orElseThrow()) {
      return new Run(core, resolved, directory, progress, signal)
          .resume(report(resolved), checkpoint, parts -> {});
    }
  }

  private List<String> metrics(String name) throws IOException {
    List<String> lines = Files.readAllLines(folder.resolve(name).resolve("metrics.csv"));
    List<String> columns = List.of(lines.get(0).split(","));
    List<String> stable = new ArrayList<>();
    for (String line : lines) {
      StringBuilder kept = new StringBuilder();
      String[] cells = line.split(",", -1);
      for (int i = 0; i < cells.length; i++) {
        boolean time = columns.get(i).matches(".*(_s|_ms|_per_s)");
        kept.append(time ? "" : cells[i] + ",");
      }
      stable.add(kept.toString());
    }
    return stable;
  }

  private JsonNode manifest(String name) throws IOException {
    return ManifestVerifier.read(folder.resolve(name));
  }

  @Test
  void aRunLeavesEverythingAndAValidManifest() throws IOException {
    Outcome outcome = train("a", "run.max_ticks=25", "checkpoint.interval_ticks=10");
    assertEquals("max_ticks", outcome.reason());
    assertEquals(25, outcome.tick());
    Path run = folder.resolve("a");
    assertEquals(List.of(), ManifestVerifier.verify(run));
    assertEquals(4, metrics("a").size());
    assertTrue(metrics("a").get(0).startsWith("tick,env_steps,updates,"));
    assertEquals(List.of(25L, 20L, 10L), RunDirectory.existing(run).checkpoints().ticks());
    assertTrue(core.last.closed());
    JsonNode manifest = manifest("a");
    assertEquals("completed", manifest.path("run").path("status").asString());
    assertEquals("auto", manifest.path("run").path("profile").path("requested").asString());
    assertEquals("laptop", manifest.path("run").path("profile").path("effective").asString());
    assertEquals(100, manifest.path("replay").path("committed").asLong());
    assertEquals(224, manifest.path("replay").path("host_bytes").asLong());
    assertEquals(50, manifest.path("training").path("updates").asLong());
    assertEquals("train", core.opened.get(0).path("mode").asString());
    assertEquals(16, core.opened.get(0).path("env").path("num_envs").asInt());
    assertEquals("auto", core.opened.get(0).path("env").path("threads").asString());
    Status last = shown.get(shown.size() - 1);
    assertEquals(25, last.tick());
    assertEquals(1.5, last.tickMillis().get("physics"));
  }

  @Test
  void aResumedRunEqualsTheUninterruptedOne() throws IOException {
    train("whole", "run.max_ticks=40", "replay.save=true");
    byte[] expected = newestState("whole");
    train("half", "run.max_ticks=20", "replay.save=true");
    // What a killed run leaves behind the checkpoint: rows and half a row.
    Path csv = folder.resolve("half/metrics.csv");
    Files.writeString(csv, Files.readString(csv) + "30,120,60,9,9,9,9,9,9,9,9\n40,1");
    core.engines = () -> new FakeEngine(99);
    Outcome outcome = resume("half", "run.max_ticks=40");
    assertEquals(40, outcome.tick());
    assertEquals(metrics("whole"), metrics("half"));
    assertArrayEquals(expected, newestState("half"));
    JsonNode manifest = manifest("half");
    assertEquals(20, manifest.path("run").path("resumed").path("tick").asLong());
    assertTrue(manifest.path("run").path("resumed").path("with_replay").asBoolean());
    assertEquals(List.of(), ManifestVerifier.verify(folder.resolve("half")));
  }

  private byte[] newestState(String name) throws IOException {
    RunDirectory directory = RunDirectory.existing(folder.resolve(name));
    try (Checkpoint checkpoint = directory.checkpoints().newest().checkpoint().orElseThrow()) {
      byte[] state = Files.readAllBytes(checkpoint.path().resolve("state.safetensors"));
      byte[] replay = Files.readAllBytes(checkpoint.path().resolve("replay.safetensors"));
      byte[] both = Arrays.copyOf(state, state.length + replay.length);
      System.arraycopy(replay, 0, both, state.length, replay.length);
      return both;
    }
  }

  @Test
  void aStopEndsAtATickWithCheckpointAndManifest() throws IOException {
    Resolved resolved = config("run.max_ticks=1000");
    RunDirectory directory = new RunDirectory(folder.resolve("stopped"));
    try (StopSignal signal = StopSignal.install()) {
      Progress stopping =
          new Progress() {
            @Override
            public void update(Status status) {
              signal.request();
            }

            @Override
            public void note(String line) {}

            @Override
            public void finish() {}
          };
      Outcome outcome =
          new Run(core, resolved, directory, stopping, signal).train(report(resolved));
      assertTrue(outcome.stopped());
      assertEquals(10, outcome.tick());
      assertEquals(List.of(10L), directory.checkpoints().ticks());
    }
    assertEquals("stopped", manifest("stopped").path("run").path("status").asString());
    assertEquals(List.of(), ManifestVerifier.verify(directory.path()));
  }

  @Test
  void aStopBeforeTheFirstTickCanBeGoneOnFrom() {
    Resolved resolved = config("run.max_ticks=20");
    RunDirectory directory = new RunDirectory(folder.resolve("early"));
    try (StopSignal signal = StopSignal.install()) {
      signal.request();
      Outcome outcome =
          new Run(core, resolved, directory, progress, signal).train(report(resolved));
      assertTrue(outcome.stopped());
      assertEquals(0, outcome.tick());
    }
    assertEquals(20, resume("early").tick());
  }

  @Test
  void aRunThatGoesOnHasNoManifestUntilItEnds() {
    train("on", "run.max_ticks=10");
    List<Boolean> seen = new ArrayList<>();
    Progress watching =
        new Progress() {
          @Override
          public void update(Status status) {
            seen.add(Files.exists(folder.resolve("on/manifest.json")));
          }

          @Override
          public void note(String line) {}

          @Override
          public void finish() {}
        };
    resume("on", watching, "run.max_ticks=20");
    assertEquals(List.of(false), seen);
    assertTrue(Files.exists(folder.resolve("on/manifest.json")));
  }

  @Test
  void roomForTheManifestIsKeptUntilItIsWritten() throws IOException {
    Path room = folder.resolve("kept/.manifest.json.room");
    List<Long> seen = new ArrayList<>();
    Progress watching =
        new Progress() {
          @Override
          public void update(Status status) {
            seen.add(room.toFile().length());
          }

          @Override
          public void note(String line) {}

          @Override
          public void finish() {}
        };
    Resolved resolved = config("run.max_ticks=10");
    try (StopSignal signal = StopSignal.install()) {
      RunDirectory directory = new RunDirectory(folder.resolve("kept"));
      new Run(core, resolved, directory, watching, signal).train(report(resolved));
    }
    assertFalse(Files.exists(room));
    resume("kept", watching, "run.max_ticks=20");
    assertFalse(Files.exists(room));
    assertEquals(List.of(256L << 10, 256L << 10), seen);
    core.engines = () -> new FakeEngine(1).failingAfter(5);
    assertThrows(RunFailure.class, () -> resume("kept", "run.max_ticks=30"));
    assertFalse(Files.exists(room));
    assertEquals(List.of(), ManifestVerifier.verify(folder.resolve("kept")));
  }

  @Test
  void aFailureKeepsTheLastCheckpointAndNamesTheFirstError() throws IOException {
    core.engines = () -> new FakeEngine(1).failingAfter(25);
    RunFailure failure =
        assertThrows(
            RunFailure.class,
            () -> train("bad", "run.max_ticks=100", "checkpoint.interval_ticks=10"));
    assertEquals(
        "the run failed in learner.update 25 on learner: the fake engine broke",
        failure.getMessage());
    JsonNode manifest = manifest("bad");
    assertEquals("failed", manifest.path("run").path("status").asString());
    assertEquals("learner.update", manifest.path("error").path("operation").asString());
    assertEquals(List.of(), ManifestVerifier.verify(folder.resolve("bad")));
    assertTrue(core.last.closed());
    RunDirectory directory = RunDirectory.existing(folder.resolve("bad"));
    try (Checkpoint checkpoint = directory.checkpoints().newest().checkpoint().orElseThrow()) {
      assertEquals(20, checkpoint.info().tick());
    }
  }

  @Test
  void aRunWithoutAFiniteTickFails() throws IOException {
    core.engines = () -> new FakeEngine(1).nonFinite(FakeEngine.ENVS - 1);
    train("some", "run.max_ticks=20");
    core.engines = () -> new FakeEngine(1).nonFinite(FakeEngine.ENVS);
    RunFailure failure = assertThrows(RunFailure.class, () -> train("none", "run.max_ticks=20"));
    String why =
        "nothing to learn (40 of 40); the first bad one: tick 0: rewards.lean was not finite";
    assertTrue(failure.getMessage().endsWith(why), failure.getMessage());
    JsonNode manifest = manifest("none");
    assertEquals("failed", manifest.path("run").path("status").asString());
    assertTrue(manifest.path("error").path("message").asString().endsWith(why));
  }

  @Test
  void aResumeThatCannotStartChangesNothing() throws IOException {
    train("kept", "run.max_ticks=10");
    Path run = folder.resolve("kept");
    byte[] before = Files.readAllBytes(run.resolve("manifest.json"));
    core.engines = () -> new FakeEngine(1).without("alpha/log");
    RunFailure failure = assertThrows(RunFailure.class, () -> resume("kept", "run.max_ticks=20"));
    assertTrue(failure.getMessage().endsWith("; the run is as it was"), failure.getMessage());
    assertArrayEquals(before, Files.readAllBytes(run.resolve("manifest.json")));
  }

  @Test
  void aResumeRefusesForeignMetrics() throws IOException {
    train("kept", "run.max_ticks=10");
    Path run = folder.resolve("kept");
    byte[] before = Files.readAllBytes(run.resolve("manifest.json"));
    Files.writeString(run.resolve("metrics.csv"), "time,price\n1,2\n");
    BadInputException e =
        assertThrows(BadInputException.class, () -> resume("kept", "run.max_ticks=20"));
    assertTrue(e.getMessage().startsWith(run.resolve("metrics.csv") + ": no metrics of a run"));
    assertEquals("time,price\n1,2\n", Files.readString(run.resolve("metrics.csv")));
    assertArrayEquals(before, Files.readAllBytes(run.resolve("manifest.json")));
  }

  @Test
  void aResumeSaysThatLinesOfMetricsAreLost() throws IOException {
    train("lost", "run.max_ticks=20");
    Path csv = folder.resolve("lost/metrics.csv");
    List<String> lines = Files.readAllLines(csv);
    resume("lost", "run.max_ticks=30");
    assertEquals(List.of(), notes);
    Files.write(csv, lines.subList(0, 2));
    resume("lost", "run.max_ticks=40");
    assertEquals(
        List.of("warning: " + csv + ": the lines from tick 10 to tick 30 are lost"), notes);
    Files.delete(csv);
    resume("lost", "run.max_ticks=50");
    assertEquals("warning: " + csv + ": the lines from tick 0 to tick 40 are lost", notes.get(1));
  }

  @Test
  void oneProcessTrainsInADirectory() throws IOException {
    train("used", "run.max_ticks=10");
    RunDirectory directory = RunDirectory.existing(folder.resolve("used"));
    RunLock held = directory.lock();
    BadInputException e = assertThrows(BadInputException.class, directory::lock);
    assertEquals(
        directory.path() + ": another process trains in this run directory", e.getMessage());
    held.close();
    directory.lock().close();
  }

  @Test
  void anExistingDirectoryIsNeverTouched() throws IOException {
    Path run = folder.resolve("there");
    Files.createDirectory(run);
    Files.writeString(run.resolve("precious"), "x");
    BadInputException e = assertThrows(BadInputException.class, () -> train("there"));
    assertTrue(e.getMessage().startsWith(run + ": exists already"), e.getMessage());
    try (var files = Files.list(run)) {
      assertEquals(1, files.count());
    }
    Files.writeString(folder.resolve("file"), "x");
    e = assertThrows(BadInputException.class, () -> train("file/run"));
    assertEquals(1, e.getMessage().lines().count());
  }

  @Test
  void playAsksForOneEnvironmentForEachEpisode() {
    train("p", "run.max_ticks=10");
    RunDirectory directory = RunDirectory.existing(folder.resolve("p"));
    var config = ConfigLoader.reload(directory.config(), List.of());
    core.engines = () -> new FakeEngine(5).without("critic/0/l0/bias").without("replay/rows");
    try (Checkpoint checkpoint = directory.checkpoints().newest().checkpoint().orElseThrow()) {
      Play.Report report = Play.run(core, config, checkpoint, 3, true, 9);
      assertEquals(3, report.episodes().size());
      assertEquals(10, report.lengthMean());
      assertEquals(10, report.tick());
    }
    JsonNode opened = core.opened.get(core.opened.size() - 1);
    assertEquals("play", opened.path("mode").asString());
    assertEquals(3, opened.path("env").path("num_envs").asInt());
    assertEquals(9, opened.path("seed").asInt());
    assertFalse(opened.path("env").path("noise").asBoolean(true));
    assertFalse(opened.path("env").path("events").asBoolean(true));
    assertTrue(core.last.closed());
  }

  @Test
  void statesGoForwardOnly() {
    assertEquals(RunState.OPEN, RunState.PREFLIGHTED.to(RunState.OPEN));
    assertThrows(IllegalStateException.class, () -> RunState.NEW.to(RunState.RUNNING));
    assertThrows(IllegalStateException.class, () -> RunState.CLOSED.to(RunState.FAILED));
    assertThrows(IllegalStateException.class, () -> RunState.FAILED.to(RunState.NEW));
  }

  @Test
  void tensorBoardCanBeOff() {
    train("quiet", "run.max_ticks=10", "log.tensorboard=false");
    assertFalse(Files.exists(folder.resolve("quiet/tb")));
  }
}

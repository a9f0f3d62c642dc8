package dev.millrace.run;

import dev.millrace.checkpoint.Checkpoint;
import dev.millrace.checkpoint.CheckpointException;
import dev.millrace.checkpoint.CheckpointInfo;
import dev.millrace.config.ConfigLoader;
import dev.millrace.config.RunConfig;
import dev.millrace.config.YamlWriter;
import dev.millrace.core.Core;
import dev.millrace.core.Engine;
import dev.millrace.core.Json;
import dev.millrace.core.NativeException;
import dev.millrace.io.AtomicFile;
import dev.millrace.io.FileErrors;
import dev.millrace.io.FileOps;
import dev.millrace.io.Sha256;
import dev.millrace.manifest.BuildInfo;
import dev.millrace.manifest.Manifest;
import dev.millrace.preflight.PreflightReport;
import dev.millrace.progress.Progress;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.UUID;
import java.util.function.Consumer;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * One run from the preflight to the manifest. Used once, on one thread; a failure at any point
 * after the directory exists leaves a manifest that names the first error.
 */
public final class Run {
  private final Core core;
  private final ConfigLoader.Resolved resolved;
  private final RunDirectory directory;
  private final Progress progress;
  private final StopSignal signal;
  private final Manifest manifest = new Manifest();
  private RunState state = RunState.NEW;
  private boolean isResumed;
  private boolean hasBegun; // to change what lies in the directory

  public Run(
      Core core,
      ConfigLoader.Resolved resolved,
      RunDirectory directory,
      Progress progress,
      StopSignal signal) {
    this.core = core;
    this.resolved = resolved;
    this.directory = directory;
    this.progress = progress;
    this.signal = signal;
  }

  /** Starts in a new directory. */
  public Outcome train(PreflightReport report) {
    directory.create();
    RunLock held = directory.lock();
    try {
      return execute(
          report,
          () ->
              AtomicFile.write(
                  FileOps.SYSTEM,
                  directory.config(),
                  YamlWriter.write(resolved.config()).getBytes(StandardCharsets.UTF_8)),
          null,
          parts -> {});
    } finally {
      held.close();
    }
  }

  /**
   * Goes on from a checkpoint of the directory, whose lock the caller holds; {@code restored} hears
   * what came back. Where it cannot go on, nothing of the run has changed.
   */
  public Outcome resume(
      PreflightReport report, Checkpoint checkpoint, Consumer<List<Checkpoint.Part>> restored) {
    return execute(report, () -> {}, checkpoint, restored);
  }

  private interface Step {
    void run() throws IOException;
  }

  private Outcome execute(
      PreflightReport report,
      Step prepare,
      Checkpoint checkpoint,
      Consumer<List<Checkpoint.Part>> restored) {
    isResumed = checkpoint != null;
    describe(report);
    state = state.to(RunState.PREFLIGHTED);
    JsonNode[] firstError = new JsonNode[1];
    try {
      prepare.run();
      Outcome outcome;
      try (Engine engine = core.open(openConfig())) {
        state = state.to(RunState.OPEN);
        try {
          outcome = run(engine, checkpoint, restored);
          refuseUnusedGraphs();
        } catch (RuntimeException | IOException e) {
          firstError[0] = engine.error();
          throw e;
        } finally {
          signal.onStop(() -> {});
        }
      }
      manifest.end(outcome.stopped() ? "stopped" : "completed", outcome.reason());
      manifest.write(directory.path());
      state = state.to(RunState.CLOSED);
      return outcome;
    } catch (RuntimeException | IOException e) {
      throw failed(e, firstError[0]);
    }
  }

  private void describe(PreflightReport report) {
    RunConfig config = resolved.config();
    ObjectNode run = manifest.section("run");
    run.put("id", UUID.randomUUID().toString());
    run.put("task", config.task()).put("algo", config.algo()).put("seed", config.seed());
    run.putObject("profile")
        .put("requested", resolved.requested().toString())
        .put("effective", config.profile().toString())
        .put("reason", resolved.profileReason());
    manifest.merge("build", BuildInfo.of(core.describe()));
    manifest.merge("config", Json.tree(ConfigLoader.tree(config)));
    manifest.section("preflight").set("findings", Json.tree(report.findings()));
    manifest.merge("device", report.facts().path("device"));
    manifest.merge("budget", report.facts().path("budget"));
  }

  private ObjectNode openConfig() {
    ObjectNode config = Json.tree(ConfigLoader.tree(resolved.config()));
    config.put("mode", "train");
    config.put("selection_path", selectionPath());
    if (resolved.config().log().trace()) {
      config.put("trace_path", directory.trace().toAbsolutePath().toString());
    }
    return config;
  }

  private String selectionPath() {
    String configured = resolved.config().selectionCache();
    if (configured == null) {
      return directory.selections().toString();
    }
    return configured.equals("none") ? "" : Path.of(configured).toAbsolutePath().toString();
  }

  /** What was measured, and how long that took. */
  private void noteSelections() {
    manifest
        .section("selection")
        .properties()
        .forEach(
            entry -> {
              JsonNode selection = entry.getValue();
              progress.note(
                  String.format(
                      Locale.ROOT,
                      "selection %s: %s (%s; %s, profiled for %.0f ms)",
                      entry.getKey(),
                      selection.path("way").asString("?"),
                      selection.path("reason").asString(""),
                      selection.path("source").asString(""),
                      selection.path("profile_ms").asDouble(0)));
            });
  }

  private Outcome run(
      Engine engine, Checkpoint checkpoint, Consumer<List<Checkpoint.Part>> restored)
      throws IOException {
    signal.onStop(engine::stop);
    String config = Sha256.of(directory.config());
    CheckpointInfo.Progress start = new CheckpointInfo.Progress(0, 0, 0, 0, config);
    if (checkpoint != null) {
      List<Checkpoint.Part> parts = checkpoint.restore(engine);
      CheckpointInfo info = checkpoint.info();
      start =
          new CheckpointInfo.Progress(
              info.tick(), info.envSteps(), info.updates(), info.trainingSeconds(), config);
      manifest
          .section("run")
          .putObject("resumed")
          .put("tick", info.tick())
          .put("with_replay", info.hasReplay())
          .set("parts", Json.tree(parts));
      restored.accept(parts);
    }
    takeFacts(engine.facts());
    state = state.to(RunState.RUNNING);
    try (Telemetry telemetry =
        new Telemetry(resolved.config(), directory, progress, start.tick())) {
      Manifest.reserve(directory.path());
      hasBegun = true;
      Manifest.withdraw(directory.path());
      RunLoop loop =
          new RunLoop(
              resolved.config(),
              engine,
              telemetry,
              directory.checkpoints(),
              signal::requested,
              start);
      Outcome outcome;
      try {
        outcome = loop.run();
      } catch (RuntimeException | IOException e) {
        takeLastFacts(engine, e);
        throw e;
      }
      takeFacts(engine.facts());
      state = state.to(RunState.STOPPING);
      progress.finish();
      noteSelections();
      takeOutcome(outcome, start, loop.counters());
      return outcome;
    }
  }

  /** A graph that was asked for and never ran is a failure, not a detail. */
  private void refuseUnusedGraphs() {
    if (resolved.config().graph() != RunConfig.Graph.ON) {
      return;
    }
    for (var entry : manifest.section("graphs").properties()) {
      JsonNode program = entry.getValue();
      boolean onDevice = program.path("place").asString("").equals("device");
      boolean ran = program.path("eager_runs").asLong(0) > 0;
      if (onDevice && ran && program.path("replays").asLong(0) == 0) {
        throw new RunFailure(
            "graph: on was requested, but the graph of "
                + entry.getKey()
                + " was never replayed: it is "
                + program.path("state").asString("?")
                + " after "
                + program.path("eager_runs").asLong(0)
                + " eager runs "
                + program.path("reason").asString(""),
            null);
      }
    }
  }

  /** What became of the graphs of a run that failed; its own failure is the one that counts. */
  private void takeLastFacts(Engine engine, Exception failure) {
    try {
      takeFacts(engine.facts());
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    }
  }

  private void takeFacts(JsonNode facts) {
    manifest.take(facts, List.of("carriers", "rng", "graphs", "selection"));
    manifest.merge("replay", facts.path("replay"));
    manifest.merge("budget", facts.path("budget"));
    manifest.section("device").set("physics", facts.path("physics").deepCopy());
    manifest.section("device").set("threads", facts.path("threads").deepCopy());
    manifest.section("training").set("learner", facts.path("learner").deepCopy());
    manifest.section("training").set("policy", facts.path("policy").deepCopy());
  }

  private void takeOutcome(Outcome outcome, CheckpointInfo.Progress start, JsonNode counters) {
    manifest.merge("replay", counters);
    double seconds = outcome.seconds() - start.trainingSeconds();
    ObjectNode training = manifest.section("training");
    training.put("ticks", outcome.tick());
    training.put("env_steps", outcome.envSteps());
    training.put("updates", outcome.updates());
    number(training, "return_mean", outcome.returnMean());
    number(training, "episode_length_mean", outcome.episodeLengthMean());
    number(training, "env_steps_per_s", (outcome.envSteps() - start.envSteps()) / seconds);
    number(training, "updates_per_s", (outcome.updates() - start.updates()) / seconds);
    number(training, "seconds", outcome.seconds());
  }

  private static void number(ObjectNode section, String key, double value) {
    if (Double.isFinite(value)) {
      section.put(key, value);
    } else {
      section.putNull(key);
    }
  }

  /**
   * Writes the manifest of a failed run; the first error of the engine is the cause that counts.
   */
  private RuntimeException failed(Exception cause, JsonNode firstError) {
    RunState at = state;
    if (state != RunState.CLOSED) {
      state = state.to(RunState.FAILED);
    }
    JsonNode error = firstError;
    if (error == null) {
      String code = cause instanceof NativeException known ? known.code() : code(cause);
      error =
          Json.object()
              .put("operation", "run." + at.name().toLowerCase(Locale.ROOT))
              .put("code", code)
              .put("message", String.valueOf(cause.getMessage()));
    }
    String unwritten = isResumed && !hasBegun ? "; the run is as it was" : writeFailed(error);
    if (firstError == null && !expected(cause)) {
      return (RuntimeException) cause;
    }
    return new RunFailure(describe(error) + unwritten, cause);
  }

  /** Empty, or why there is no manifest. */
  private String writeFailed(JsonNode error) {
    manifest.error(error);
    manifest.end("failed", error.path("message").asString(""));
    try {
      manifest.write(directory.path());
      return "";
    } catch (IOException e) {
      return "; and " + FileErrors.reason(e);
    }
  }

  private static String code(Exception cause) {
    if (cause instanceof IOException) {
      return "resource";
    }
    return expected(cause) ? "invalid" : "bug";
  }

  /** Whether the world is to blame, and not this program. */
  private static boolean expected(Exception cause) {
    return cause instanceof IOException
        || cause instanceof NativeException
        || cause instanceof CheckpointException
        || cause instanceof RunFailure
        || cause instanceof IllegalArgumentException;
  }

  private static String describe(JsonNode error) {
    String where = error.path("operation").asString("");
    if (error.has("sequence")) {
      where += " " + error.path("sequence") + " on " + error.path("thread").asString("?");
    }
    return "the run failed in " + where + ": " + error.path("message").asString("");
  }
}

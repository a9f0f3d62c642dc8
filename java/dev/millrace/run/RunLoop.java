package dev.millrace.run;

import dev.millrace.checkpoint.CheckpointInfo;
import dev.millrace.checkpoint.CheckpointStore;
import dev.millrace.config.RunConfig;
import dev.millrace.core.Engine;
import java.io.IOException;
import java.nio.file.Path;
import java.util.function.BooleanSupplier;
import tools.jackson.databind.JsonNode;

/**
 * Advances a run from log boundary to log boundary until a limit or a stop. Boundaries are
 * multiples of the interval, not of where the run started, so a resumed run logs at the same ticks.
 * Runs on the thread that opened the engine.
 */
final class RunLoop {
  private final RunConfig config;
  private final Engine engine;
  private final Telemetry telemetry;
  private final CheckpointStore checkpoints;
  private final BooleanSupplier stopRequested;
  private final CheckpointInfo.Progress start;

  private long tick;
  private long envSteps;
  private long updates;
  private double seconds;
  private long checkpointTick;
  private Path checkpoint;
  private JsonNode counters;

  RunLoop(
      RunConfig config,
      Engine engine,
      Telemetry telemetry,
      CheckpointStore checkpoints,
      BooleanSupplier stopRequested,
      CheckpointInfo.Progress start) {
    this.config = config;
    this.engine = engine;
    this.telemetry = telemetry;
    this.checkpoints = checkpoints;
    this.stopRequested = stopRequested;
    this.start = start;
    this.tick = start.tick();
    this.envSteps = start.envSteps();
    this.updates = start.updates();
    this.seconds = start.trainingSeconds();
    this.checkpointTick = start.tick();
  }

  /** Runs to the end and leaves a checkpoint there. */
  Outcome run() throws IOException {
    long startNanos = System.nanoTime();
    String reason = endReason();
    while (reason == null) {
      step(startNanos);
      reason = endReason();
      if (reason == null && checkpointIsDue()) {
        writeCheckpoint();
      }
    }
    writeCheckpoint();
    return new Outcome(
        reason,
        tick,
        envSteps,
        updates,
        seconds,
        telemetry.returnMean(),
        telemetry.lengthMean(),
        checkpoint);
  }

  private void step(long startNanos) throws IOException {
    long ticks = boundaryAfter(tick) - tick;
    JsonNode result = engine.advance(ticks);
    seconds = start.trainingSeconds() + (System.nanoTime() - startNanos) / 1e9;
    long reached = result.path("tick").asLong();
    counters = result.path("replay");
    if (reached == tick && !stopRequested.getAsBoolean()) {
      throw new IllegalStateException("the engine did not advance from tick " + tick);
    }
    if (reached > tick) {
      tick = reached;
      envSteps = result.path("env_steps").asLong();
      updates = result.path("updates").asLong();
      telemetry.record(new Telemetry.Window(tick, envSteps, updates, seconds), result);
    }
  }

  private String endReason() {
    if (stopRequested.getAsBoolean()) {
      return "signal";
    }
    if (config.run().maxTicks() > 0 && tick >= config.run().maxTicks()) {
      return "max_ticks";
    }
    if (config.run().maxSeconds() > 0 && seconds >= config.run().maxSeconds()) {
      return "max_seconds";
    }
    return null;
  }

  private long boundaryAfter(long from) {
    long interval = config.log().intervalTicks();
    long boundary = (from / interval + 1) * interval;
    long limit = config.run().maxTicks();
    return limit > 0 ? Math.min(boundary, limit) : boundary;
  }

  private boolean checkpointIsDue() {
    long interval = config.checkpoint().intervalTicks();
    return interval > 0 && tick / interval > checkpointTick / interval;
  }

  private void writeCheckpoint() throws IOException {
    checkpoint =
        checkpoints.write(
            engine,
            new CheckpointInfo.Progress(tick, envSteps, updates, seconds, start.configSha256()),
            config.replay().save(),
            config.checkpoint().keep());
    checkpointTick = tick;
  }

  /** The replay counters of the last call, or null. */
  JsonNode counters() {
    return counters;
  }
}

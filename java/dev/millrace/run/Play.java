package dev.millrace.run;

import dev.millrace.checkpoint.Checkpoint;
import dev.millrace.config.ConfigLoader;
import dev.millrace.config.RunConfig;
import dev.millrace.core.Core;
import dev.millrace.core.Engine;
import dev.millrace.core.Json;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** Plays episodes with the deterministic policy of a checkpoint: one environment for each. */
public final class Play {
  private static final int TICKS_PER_CALL = 100;

  private Play() {}

  /** One finished episode. */
  public record Episode(double reward, long length, String reason) {}

  /** All episodes, in the order in which they ended, and the device that the policy acted on. */
  public record Report(long tick, String device, List<Episode> episodes) {
    public double returnMean() {
      return episodes.stream().mapToDouble(Episode::reward).average().orElse(Double.NaN);
    }

    public double lengthMean() {
      return episodes.stream().mapToLong(Episode::length).average().orElse(Double.NaN);
    }
  }

  /**
   * Plays episodes with the checkpoint's policy, each from a reset.
   *
   * @param clean without observation noise and events
   */
  public static Report run(
      Core core, RunConfig config, Checkpoint checkpoint, int episodes, boolean clean, long seed) {
    ObjectNode request = Json.tree(ConfigLoader.tree(config));
    request.put("mode", "play").put("seed", seed);
    request.putObject("play").put("episodes", episodes);
    ObjectNode env = ((ObjectNode) request.get("env")).put("num_envs", episodes);
    if (clean) {
      env.put("noise", false).put("events", false);
    }
    try (Engine engine = core.open(request)) {
      checkpoint.restorePart(engine);
      String device = engine.facts().path("device").path("effective").asString();
      return new Report(checkpoint.info().tick(), device, play(engine, episodes));
    }
  }

  private static List<Episode> play(Engine engine, int episodes) {
    List<Episode> done = new ArrayList<>();
    boolean finished = false;
    long tick = -1;
    while (!finished && done.size() < episodes) {
      JsonNode result = engine.advance(TICKS_PER_CALL);
      for (JsonNode each : result.path("episodes")) {
        done.add(
            new Episode(
                each.path("return").asDouble(),
                each.path("length").asLong(),
                each.path("reason").asString("")));
      }
      finished = result.path("finished").asBoolean(false);
      long reached = result.path("tick").asLong();
      if (reached == tick && !finished) {
        throw new IllegalStateException("the engine did not advance from tick " + tick);
      }
      tick = reached;
    }
    return done.subList(0, Math.min(episodes, done.size()));
  }
}

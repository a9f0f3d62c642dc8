package dev.millrace.config;

import java.util.Locale;
import java.util.Map;

/**
 * A resolved configuration: every key of a run with its value. Record components are the keys in
 * camel case; their annotations say what a single value may be. What several values may be together
 * is the preflight's business. Immutable.
 *
 * <p>{@code selectionCache} is the file that keeps what {@code graph: auto} has measured; null is
 * the one beside the run directory, "none" keeps nothing.
 */
public record RunConfig(
    String task,
    String algo,
    Profile profile,
    @Range(min = 0) long seed,
    Device device,
    Graph graph,
    Precision precision,
    @Nullable String selectionCache,
    Run run,
    Env env,
    Map<String, Reward> rewards,
    Curriculum curriculum,
    Collector collector,
    Replay replay,
    Learner learner,
    Log log,
    Checkpoint checkpoint) {

  /** Which overlay of a configuration applies; auto is laptop exactly if no GPU was found. */
  public enum Profile {
    AUTO,
    FULL,
    LAPTOP;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** Where the update step and the learner run. */
  public enum Device {
    AUTO,
    CPU,
    CUDA,
    METAL
  }

  /** Whether programs are captured and replayed. */
  public enum Graph {
    OFF,
    AUTO,
    ON
  }

  /** What the learner computes in. */
  public enum Precision {
    AUTO,
    FP32,
    TF32,
    BF16
  }

  /** How rows get from the collector to the learner. */
  public enum Pipeline {
    DEVICE_RESIDENT,
    CPU_PINNED_DOUBLE_BUFFER
  }

  /** When the run ends; 0 is no limit. */
  public record Run(@Range(min = 0) long maxTicks, @Range(min = 0) double maxSeconds) {}

  /** At which frame of a motion an episode starts; adaptive: often before frames that fail. */
  public enum MotionStart {
    START,
    CLIP_START,
    UNIFORM,
    ADAPTIVE,
    MIXED
  }

  /**
   * The environments; {@code modelFile} null is the task's own robot, {@code motionFile} null its
   * own motion. Both motion keys are null for a task without one.
   */
  public record Env(
      @Range(min = 1, max = 1 << 20) int numEnvs,
      @Range(min = 1, max = 1024) Threads threads,
      boolean noise,
      boolean events,
      @Nullable String modelFile,
      @Nullable String motionFile,
      @Nullable MotionStart motionStart) {}

  /**
   * One reward: a term, whose parameters left out have its own defaults, or an expression with a
   * name of its own.
   */
  public record Reward(
      double weight, Map<String, Double> params, @Nullable(shown = false) String expr) {}

  /** Rules that make the task harder as the robot gets better. */
  public record Curriculum(Penalty penalty) {}

  /** Scales all negative reward weights by the average length of episodes. */
  public record Penalty(
      boolean enabled,
      @Range(min = 0) double start,
      @Range(min = 0) double min,
      @Range(min = 0) double max,
      @Range(min = 0) double lowerLength,
      @Range(min = 0) double upperLength,
      @Range(min = 0, max = 1) double rate,
      @Range(min = 1) double window) {}

  /** Where something runs: on the host, or on the device that holds the replay. */
  public enum Where {
    AUTO,
    HOST,
    DEVICE
  }

  /** How collecting and learning take turns, and where the update step runs. */
  public record Collector(
      boolean sync, @Range(min = 1, max = 1024) int maxLeadTicks, Where update) {}

  /** The replay ring and the slots that feed it; capacity in rows. */
  public record Replay(
      Pipeline pipeline,
      @Range(min = 0) long capacityRows,
      @Range(min = 0, max = 1024) int ingressDepth,
      boolean save) {}

  /** What rewards are divided by: nothing, or a running measure of returns. */
  public enum RewardScaling {
    OFF,
    EPISODE,
    FLASHSAC
  }

  /** Hidden layers: the algorithm's own, or (FastSAC only) all h wide with ReLU. */
  public enum Network {
    AUTO,
    PLAIN
  }

  /** What the critics learn: a distribution of values on atoms, or (FastSAC only) one value. */
  public enum Critic {
    C51,
    SCALAR
  }

  /** The algorithm's own settings. */
  public record Learner(
      Where place,
      @Range(min = 1) int batch,
      @Range(min = 1, max = 1024) int updatesPerTick,
      @Range(min = 0) int learningStarts,
      @Range(min = 1) int policyFrequency,
      @Range(min = 0, max = 1) double gamma,
      @Range(min = 0, max = 1) double tau,
      Network network,
      @Range(min = 4) int actorHidden,
      @Range(min = 4) int criticHidden,
      Critic critic,
      @Range(min = 2) int atoms,
      double vMin,
      double vMax,
      @Range(min = 0) double actorLr,
      @Range(min = 0) double criticLr,
      @Range(min = 0) double alphaLr,
      @Range(min = 0) int lrDecaySteps,
      @Range(min = 0, max = 1) double lrFinalShare,
      @Range(min = 0) double weightDecay,
      @Range(min = 0, max = 1) double beta1,
      @Range(min = 0, max = 1) double beta2,
      @Range(min = 0) double alphaInit,
      double targetEntropyRatio,
      @Range(min = 0) double maxGradNorm,
      boolean symmetry,
      boolean observationNormalizer,
      RewardScaling rewardScaling,
      @Range(min = 1, max = 1024) int noiseRepeatMax,
      @Range(min = 1, max = 1024) int threads) {}

  /** What is written while the run goes on. */
  public record Log(@Range(min = 1) int intervalTicks, boolean tensorboard, boolean trace) {}

  /** How often a checkpoint is written (0: only at the end), and how many are kept. */
  public record Checkpoint(@Range(min = 0) long intervalTicks, @Range(min = 1) int keep) {}
}

package dev.millrace.core;

import java.nio.ByteBuffer;

/**
 * The only class with native methods. Control crosses as JSON text, at most once per log interval;
 * bulk data (checkpoint tensors) crosses as direct buffers. Native code never calls up.
 *
 * <p>Threads: the thread that opens a run is its owner; only {@link #stop} and {@link #error} may
 * be called from another one. A stale or foreign handle is an {@link IllegalStateException}.
 *
 * <p>Errors: bad input is an {@link IllegalArgumentException} with one line; everything else that
 * native code reports is a {@link NativeException}.
 */
final class NativeCore {
  private NativeCore() {}

  /**
   * What this library is and knows: {@code {version, compiler, mujoco:{compiled, loaded}, blas,
   * cores, memory:{available_bytes, source}, backends:[{name, available, reason, device}],
   * tasks:[{name, algo, summary, observation_dim, critic_dim, action_dim, tick_seconds, max_steps,
   * observations:[{term, dim, scale, noise, unit}], critic:[…], rewards:[{term, weight, params}],
   * terminations:[{term, params, truncates}], events, commands, curriculum}], terms:[{name, kind,
   * unit, summary, params:[{name, default, unit, min, max, summary}]}]}}.
   */
  static native String describe();

  /**
   * All findings for a resolved configuration, before any large allocation: {@code {findings:[{id,
   * verdict, subject, reason, hint}], budget:{host:{items:[{name, bytes, formula}], total_bytes,
   * free_bytes, limit_bytes}, device:{…}}, device:{requested, effective, reason}, threads,
   * task:{…}, terms:[{kind, term, detail, stream, draws_per_tick, draws_per_reset, class, verdict,
   * reason, hint}], graphs:{update:{requested, findings, name, ops:[{name, site, device, parts,
   * reads, writes}], carriers:[{name, owner, device, bytes}]}, learner_critic and
   * learner_critic_and_actor: the same with place (device or host), the second's the actor's part
   * alone}}}. Without a robot model there are no terms, ops, carriers and learner's programs.
   */
  static native String preflight(String config);

  /**
   * Opens a run: {@code config} is the resolved configuration plus {@code mode}: {@code "train"} or
   * {@code "play"} (environments and policy only; with {@code play:{episodes, clean}}).
   */
  static native long open(String config);

  /**
   * Static facts of an open run: {@code {carriers, rng, replay, budget, physics, threads, graphs}}.
   */
  static native String facts(long run);

  /**
   * Runs at most {@code ticks} more ticks (fewer after {@link #stop}) and returns {@code {tick,
   * env_steps, updates, stopped, finished, metrics:{name:number}, episodes:[{return, length,
   * reason}] (play only), first_bad (a sentence, empty if there was none; train only),
   * replay:{…counters}}}. Metrics cover the ticks of this call.
   */
  static native String advance(long run, long ticks);

  /** Asks {@link #advance} to return at the next tick boundary. Any thread. */
  static native void stop(long run);

  /** Everything a checkpoint holds: {@code [{name, dtype, shape, bytes, replay}]}. */
  static native String tensors(long run);

  /** Fills a direct buffer, its whole capacity, from a tensor at {@code offset}. */
  static native void read(long run, int tensor, long offset, ByteBuffer target);

  /** Copies a direct buffer, its whole capacity, into a tensor at {@code offset}. */
  static native void write(long run, int tensor, long offset, ByteBuffer source);

  /** Takes over what was written: counters, snapshots and the prefetched batch are rebuilt. */
  static native void restored(long run, boolean withReplay);

  /** {@code {kind:"physics"|"train", …}} to a JSON report with every run. */
  static native String bench(String request);

  /**
   * {@code {kind:"info"|"convert"|"make", file, out, model_file}} to {@code {source, clips, frames,
   * frames_per_second, seconds, joints, bodies, root_height:{lowest_m, highest_m}, lowest_body_m,
   * fastest_joint:{joint, rad_per_s}, joints_outside_limits:[{joint, frames, worst_rad}],
   * written}}; without a file the built-in motion.
   */
  static native String motion(String request);

  /**
   * The first error of a run: {@code {operation, sequence, thread, code, message, later}} or null.
   */
  static native String error(long run);

  /** Stops the threads and frees everything; closing twice is an IllegalStateException. */
  static native void close(long run);
}

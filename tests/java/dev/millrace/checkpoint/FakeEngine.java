package dev.millrace.checkpoint;

import dev.millrace.core.Engine;
import dev.millrace.core.Json;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * An engine without a robot: its state is a few tensors, and every tick changes all of them in a
 * way that depends on all of them, so that a restore that forgets anything shows.
 */
public final class FakeEngine implements Engine {
  public static final int ENVS = 4;

  private final Map<String, byte[]> state = new LinkedHashMap<>();
  private final List<Tensor> tensors = new ArrayList<>();
  private long tick;
  private final ObjectNode selection = Json.object();
  private long untilFailure = Long.MAX_VALUE;
  private int nonFiniteRobots;
  private volatile boolean stopped;
  private Boolean restoredWithReplay;
  private boolean closed;

  public FakeEngine(long seed) {
    this(seed, 6);
  }

  public FakeEngine(long seed, int width) {
    Random random = new Random(seed);
    add(random, "actor/l0/weight", "F32", List.of((long) width, 3L), 4, false);
    add(random, "critic/0/l0/bias", "F32", List.of(5L), 4, false);
    add(random, "alpha/log", "F64", List.of(), 8, false);
    add(random, "empty", "I32", List.of(0L), 4, false);
    add(random, "run/ticks", "U64", List.of(1L), 8, false);
    add(random, "replay/rows", "F32", List.of((long) width, 7L), 4, true);
    ByteBuffer.wrap(state.get("run/ticks")).putLong(tick);
  }

  private void add(
      Random random, String name, String dtype, List<Long> shape, int size, boolean replay) {
    int bytes = (int) (size * shape.stream().mapToLong(each -> each).reduce(1, (a, b) -> a * b));
    byte[] content = new byte[bytes];
    random.nextBytes(content);
    state.put(name, content);
    tensors.add(new Tensor(tensors.size(), name, dtype, shape, bytes, replay));
  }

  public FakeEngine without(String name) {
    tensors.removeIf(each -> each.name().equals(name));
    List<Tensor> renumbered = new ArrayList<>();
    for (Tensor each : tensors) {
      renumbered.add(
          new Tensor(
              renumbered.size(),
              each.name(),
              each.dtype(),
              each.shape(),
              each.bytes(),
              each.replay()));
    }
    tensors.clear();
    tensors.addAll(renumbered);
    return this;
  }

  /** One that says it has selected the way of a program. */
  public FakeEngine selecting(String program, JsonNode facts) {
    selection.set(program, facts);
    return this;
  }

  public FakeEngine failingAfter(long ticks) {
    untilFailure = ticks;
    return this;
  }

  /** One in which so many of its robots have no finite tick. */
  public FakeEngine nonFinite(int robots) {
    nonFiniteRobots = robots;
    return this;
  }

  public Map<String, byte[]> state() {
    return state;
  }

  public Boolean restoredWithReplay() {
    return restoredWithReplay;
  }

  public boolean closed() {
    return closed;
  }

  @Override
  public JsonNode facts() {
    ObjectNode facts =
        (ObjectNode)
            Json.parse(
                """
        {"carriers": [], "rng": {"seed": 1}, "budget": {}, "physics": {}, "threads": {},
         "graphs": {}, "device": {"requested": "cuda", "effective": "cpu"}, "replay": {"pipeline": "device_resident", "capacity_rows": 64,
         "row_bytes": 28, "row_stride_bytes": 32, "ingress_depth": 2, "host_bytes": 224,
         "device_bytes": 2048}}""");
    facts.set("selection", selection);
    return facts;
  }

  @Override
  public JsonNode advance(long ticks) {
    for (long i = 0; i < ticks && !stopped; i++) {
      if (--untilFailure < 0) {
        throw new dev.millrace.core.NativeException("device", "the fake engine broke");
      }
      tickOnce();
    }
    ObjectNode result = Json.object();
    result.put("tick", tick).put("env_steps", tick * ENVS).put("updates", tick * 2);
    result.put("stopped", stopped).put("finished", false);
    double mean = checksum() % 1000 / 7.0;
    result
        .putObject("metrics")
        .put("return_mean", mean)
        .put("episode_length_mean", 12.5)
        .put("non_finite", tick * nonFiniteRobots)
        .put("loss/critic", tick < 3 ? Double.NaN : mean / 3)
        .put("time/tick_ms", 3.0)
        .put("time/physics_ms", 1.5)
        .put("env_steps_per_s", 1000.0 + tick)
        .put("updates_per_s", 500.0);
    result.put("first_bad", nonFiniteRobots == 0 ? "" : "tick 0: rewards.lean was not finite");
    long rows = tick * ENVS;
    result
        .putObject("replay")
        .put("published", rows)
        .put("submitted", rows)
        .put("committed", rows)
        .put("size", Math.min(rows, 64))
        .put("backpressure_waits", 0)
        .put("ring_wraps", rows / 64);
    result
        .putArray("episodes")
        .addObject()
        .put("return", mean)
        .put("length", 10)
        .put("reason", "time_out");
    return result;
  }

  private void tickOnce() {
    tick++;
    long sum = checksum();
    for (byte[] content : state.values()) {
      for (int i = 0; i < content.length; i++) {
        sum = sum * 6364136223846793005L + 1442695040888963407L;
        content[i] ^= (byte) (sum >>> 56);
      }
    }
    ByteBuffer.wrap(state.get("run/ticks")).putLong(tick);
  }

  private long checksum() {
    long sum = 17;
    for (byte[] content : state.values()) {
      for (byte each : content) {
        sum = sum * 31 + each;
      }
    }
    return Math.abs(sum);
  }

  @Override
  public void stop() {
    stopped = true;
  }

  @Override
  public List<Tensor> tensors() {
    return List.copyOf(tensors);
  }

  @Override
  public void read(int tensor, long offset, ByteBuffer target) {
    if (!target.isDirect()) {
      throw new IllegalArgumentException("the buffer must be direct");
    }
    target.put(state.get(tensors.get(tensor).name()), (int) offset, target.remaining());
  }

  @Override
  public void write(int tensor, long offset, ByteBuffer source) {
    source.get(state.get(tensors.get(tensor).name()), (int) offset, source.remaining());
  }

  @Override
  public void restored(boolean withReplay) {
    restoredWithReplay = withReplay;
    tick = ByteBuffer.wrap(state.get("run/ticks")).getLong();
  }

  @Override
  public JsonNode error() {
    if (untilFailure >= 0) {
      return null;
    }
    return Json.object()
        .put("operation", "learner.update")
        .put("sequence", tick)
        .put("thread", "learner")
        .put("code", "device")
        .put("message", "the fake engine broke")
        .put("later", 0);
  }

  @Override
  public void close() {
    closed = true;
  }
}

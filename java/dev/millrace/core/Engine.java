package dev.millrace.core;

import java.nio.ByteBuffer;
import java.util.List;
import tools.jackson.databind.JsonNode;

/**
 * An open run. Only its owner, the thread that opened it, may call it, but for {@link #stop} and
 * {@link #error}.
 */
public interface Engine extends AutoCloseable {
  /** One tensor of a checkpoint, by its place in {@link #tensors()}. */
  record Tensor(
      int index, String name, String dtype, List<Long> shape, long bytes, boolean replay) {}

  /** Carriers, rng, replay, budget, physics, threads, graphs. */
  JsonNode facts();

  /** At most so many ticks; returns early after {@link #stop}. */
  JsonNode advance(long ticks);

  /** Asks {@link #advance} to return at the next tick boundary; any thread. */
  void stop();

  List<Tensor> tensors();

  /** Fills a direct buffer from a tensor's bytes. */
  void read(int tensor, long offset, ByteBuffer target);

  /** Overwrites a tensor's bytes from a direct buffer. */
  void write(int tensor, long offset, ByteBuffer source);

  /** To be called once after all tensors were written. */
  void restored(boolean withReplay);

  /** The first error of the run, or null; any thread. */
  JsonNode error();

  @Override
  void close();
}

package dev.millrace.core;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.databind.JsonNode;

/**
 * An open native run. Close it with try-with-resources. A run that is lost instead is only asked to
 * stop: device objects belong to their owner thread, so nothing is freed from a cleaner.
 */
final class NativeRun implements Engine {
  private static final Cleaner CLEANER = Cleaner.create();

  private final Handle handle;
  private final Cleaner.Cleanable cleanable;

  private NativeRun(long value) {
    this.handle = new Handle(value);
    this.cleanable = CLEANER.register(this, handle);
  }

  static NativeRun open(String config) {
    return new NativeRun(NativeCore.open(config));
  }

  /** Holds no reference to its run, else the cleaner would keep the run alive. */
  private static final class Handle implements Runnable {
    private final long value;
    private boolean closed;

    Handle(long value) {
      this.value = value;
    }

    /** What the cleaner does: nothing after a proper close. */
    @Override
    public void run() {
      if (stop()) {
        System.err.println("millrace: a run was lost without being closed; it was asked to stop");
      }
    }

    synchronized boolean stop() {
      if (!closed) {
        NativeCore.stop(value);
      }
      return !closed;
    }

    synchronized String error() {
      return closed ? null : NativeCore.error(value);
    }

    synchronized void close() {
      if (closed) {
        throw new IllegalStateException("the run is closed already");
      }
      closed = true;
      NativeCore.close(value);
    }

    synchronized long open() {
      if (closed) {
        throw new IllegalStateException("the run is closed");
      }
      return value;
    }
  }

  @Override
  public JsonNode facts() {
    try {
      return Json.parse(NativeCore.facts(handle.open()));
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  @Override
  public JsonNode advance(long ticks) {
    try {
      return Json.parse(NativeCore.advance(handle.open(), ticks));
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  @Override
  public void stop() {
    handle.stop();
  }

  @Override
  public List<Tensor> tensors() {
    JsonNode all;
    try {
      all = Json.parse(NativeCore.tensors(handle.open()));
    } finally {
      Reference.reachabilityFence(this);
    }
    List<Tensor> tensors = new ArrayList<>();
    for (JsonNode each : all) {
      List<Long> shape = new ArrayList<>();
      each.get("shape").forEach(size -> shape.add(size.asLong()));
      tensors.add(
          new Tensor(
              tensors.size(),
              each.get("name").asString(),
              each.get("dtype").asString(),
              List.copyOf(shape),
              each.get("bytes").asLong(),
              each.get("replay").asBoolean()));
    }
    return tensors;
  }

  @Override
  public void read(int tensor, long offset, ByteBuffer target) {
    try {
      NativeCore.read(handle.open(), tensor, offset, target.slice());
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  @Override
  public void write(int tensor, long offset, ByteBuffer source) {
    try {
      NativeCore.write(handle.open(), tensor, offset, source.slice());
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  @Override
  public void restored(boolean withReplay) {
    try {
      NativeCore.restored(handle.open(), withReplay);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  @Override
  public JsonNode error() {
    String error = handle.error();
    return error == null ? null : Json.parse(error);
  }

  @Override
  public void close() {
    handle.close();
    cleanable.clean();
  }
}

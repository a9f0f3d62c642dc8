package dev.millrace.checkpoint;

import dev.millrace.core.Engine;
import dev.millrace.core.Engine.Tensor;
import dev.millrace.io.FileErrors;
import dev.millrace.io.FileOps;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The checkpoints of a run. Each is a folder that is built under another name, synced, and renamed
 * into place: a kill at any instant leaves the ones before readable. Owned by the run's thread.
 */
public final class CheckpointStore {
  static final String INFO = "checkpoint.json";
  private static final Pattern NAME = Pattern.compile("tick-(\\d{12,18})");
  private static final String PARTIAL = ".partial-";
  private static final int CHUNK_BYTES = 4 << 20;

  private final Path folder;
  private final FileOps ops;
  private final Set<Long> complete = new HashSet<>(); // ticks whose files were written or checked
  private ByteBuffer chunk;

  public CheckpointStore(Path folder, FileOps ops) {
    this.folder = folder;
    this.ops = ops;
  }

  /** A folder that cannot be used, and why. */
  public record Skipped(String name, String reason) {}

  /** The newest complete checkpoint, if there is one, and the newer ones that are not complete. */
  public record Newest(Optional<Checkpoint> checkpoint, List<Skipped> skipped) {}

  /**
   * Writes a checkpoint, returns when it is safe, then deletes all but the newest {@code keep} that
   * are complete: a damaged one takes no place of theirs.
   */
  public Path write(Engine engine, CheckpointInfo.Progress at, boolean withReplay, int keep)
      throws IOException {
    Path target = folder.resolve(name(at.tick()));
    try {
      ops.createFolder(folder);
      sweep();
      // Resumed and stopped again without a tick in between, it would say the same.
      if (!isComplete(at.tick())) {
        build(target, engine, at, withReplay);
      }
      ops.syncFolder(folder);
      complete.add(at.tick());
      prune(keep);
      return target;
    } catch (IOException e) {
      throw FileErrors.cannot("write the checkpoint", target, e);
    }
  }

  private void build(Path target, Engine engine, CheckpointInfo.Progress at, boolean withReplay)
      throws IOException {
    Path work = folder.resolve(PARTIAL + target.getFileName());
    try {
      ops.createFolder(work);
      fill(work, engine, at, withReplay);
      ops.syncFolder(work);
      if (Files.exists(target)) {
        discard(target);
      }
      ops.rename(work, target);
    } catch (IOException e) {
      ops.makeRoom(work, e);
      throw e;
    }
  }

  private void fill(Path work, Engine engine, CheckpointInfo.Progress at, boolean withReplay)
      throws IOException {
    List<Tensor> tensors = engine.tensors();
    Map<String, SafetensorsWriter.Written> files = new LinkedHashMap<>();
    for (String name : List.of(CheckpointInfo.STATE, CheckpointInfo.REPLAY)) {
      boolean replay = name.equals(CheckpointInfo.REPLAY);
      if (replay && !withReplay) {
        continue;
      }
      List<Tensor> part = tensors.stream().filter(each -> each.replay() == replay).toList();
      files.put(
          name, SafetensorsWriter.write(ops, work.resolve(name), part, engine::read, chunk()));
    }
    Path info = work.resolve(INFO);
    try (FileChannel channel = ops.create(info)) {
      ops.write(channel, ByteBuffer.wrap(at.with(files).encode()));
      ops.sync(channel);
    }
  }

  /** The ticks of all checkpoints that look like one, newest first. */
  public List<Long> ticks() {
    if (!Files.isDirectory(folder)) {
      return List.of();
    }
    List<Long> ticks = new ArrayList<>();
    try (Stream<Path> entries = Files.list(folder)) {
      entries.forEach(
          entry -> {
            Matcher matcher = NAME.matcher(entry.getFileName().toString());
            if (matcher.matches()) {
              ticks.add(Long.parseLong(matcher.group(1)));
            }
          });
    } catch (IOException e) {
      throw new CheckpointException("cannot list " + folder + ": " + FileErrors.reason(e), e);
    }
    ticks.sort(Comparator.reverseOrder());
    return ticks;
  }

  /** Opens the newest checkpoint whose files are all there and unchanged. */
  public Newest newest() {
    return newest(true);
  }

  /** The same without the replay, which may be damaged: a policy needs none. */
  public Newest newestState() {
    return newest(false);
  }

  /** Those that cannot be used, newest first, and why. */
  public List<Skipped> damaged() {
    List<Skipped> damaged = new ArrayList<>();
    for (long tick : ticks()) {
      try {
        open(tick, true).close();
      } catch (CheckpointException e) {
        damaged.add(new Skipped(name(tick), e.getMessage()));
      }
    }
    return damaged;
  }

  private Newest newest(boolean withReplay) {
    List<Skipped> skipped = new ArrayList<>();
    for (long tick : ticks()) {
      try {
        return new Newest(Optional.of(open(tick, withReplay)), skipped);
      } catch (CheckpointException e) {
        skipped.add(new Skipped(name(tick), e.getMessage()));
      }
    }
    return new Newest(Optional.empty(), skipped);
  }

  /**
   * Opens and checks one checkpoint without its replay; throws {@link CheckpointException} saying
   * what is wrong.
   */
  public Checkpoint openState(long tick) {
    return open(tick, false);
  }

  private Checkpoint open(long tick, boolean withReplay) {
    Path path = folder.resolve(name(tick));
    if (Files.isRegularFile(path)) {
      throw new CheckpointException(path + ": is no folder");
    }
    if (!Files.isDirectory(path)) {
      throw new CheckpointException("no checkpoint of tick " + tick + "; there are " + ticks());
    }
    return Checkpoint.open(path, tick, withReplay);
  }

  private boolean isComplete(long tick) {
    Path path = folder.resolve(name(tick));
    if (!Files.exists(path)) {
      return false;
    }
    try (Checkpoint checkpoint = Checkpoint.open(path, tick, true)) {
      return checkpoint.info().tick() == tick;
    } catch (CheckpointException e) {
      return false;
    }
  }

  private void prune(int keep) throws IOException {
    int kept = 0;
    for (long tick : ticks()) {
      if (kept >= keep) {
        discard(folder.resolve(name(tick)));
        complete.remove(tick);
      } else if (complete.contains(tick) || isComplete(tick)) {
        complete.add(tick);
        ++kept;
      }
    }
  }

  /** Removes what killed writers left behind. */
  private void sweep() throws IOException {
    List<Path> leftovers;
    try (Stream<Path> entries = Files.list(folder)) {
      leftovers =
          entries.filter(entry -> entry.getFileName().toString().startsWith(PARTIAL)).toList();
    }
    for (Path each : leftovers) {
      ops.delete(each);
    }
  }

  /** Takes the name away first: a half-deleted folder must not look like a checkpoint. */
  private void discard(Path checkpoint) throws IOException {
    Path hidden = folder.resolve(PARTIAL + "old-" + checkpoint.getFileName());
    ops.rename(checkpoint, hidden);
    ops.delete(hidden);
  }

  private ByteBuffer chunk() {
    if (chunk == null) {
      chunk = ByteBuffer.allocateDirect(CHUNK_BYTES);
    }
    return chunk;
  }

  static String name(long tick) {
    return String.format(Locale.ROOT, "tick-%012d", tick);
  }
}

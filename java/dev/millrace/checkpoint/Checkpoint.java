package dev.millrace.checkpoint;

import dev.millrace.checkpoint.CheckpointInfo.StoredFile;
import dev.millrace.core.Engine;
import dev.millrace.core.Engine.Tensor;
import dev.millrace.io.FileErrors;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.MalformedInputException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** A complete checkpoint whose files are open: they were checked and are what will be read. */
public final class Checkpoint implements AutoCloseable {
  private static final int CHUNK_BYTES = 4 << 20;
  private static final int NAMES_SHOWN = 8;

  private final Path path;
  private final CheckpointInfo info;
  private final List<SafetensorsReader> files;

  private Checkpoint(Path path, CheckpointInfo info, List<SafetensorsReader> files) {
    this.path = path;
    this.info = info;
    this.files = files;
  }

  /** Whether a part of the run came back. */
  public record Part(String name, int tensors, long bytes, boolean restored) {}

  /** With the replay, as far as it was saved, or as if it had not been. */
  static Checkpoint open(Path path, long tick, boolean withReplay) {
    String text;
    try {
      text = Files.readString(path.resolve(CheckpointStore.INFO));
    } catch (MalformedInputException e) {
      throw new CheckpointException("checkpoint.json is damaged", e);
    } catch (IOException e) {
      throw new CheckpointException("checkpoint.json: " + FileErrors.reason(e), e);
    }
    CheckpointInfo whole = CheckpointInfo.decode(text);
    CheckpointInfo info = withReplay ? whole : whole.withoutReplay();
    if (info.tick() != tick) {
      throw new CheckpointException("checkpoint.json is of tick " + info.tick());
    }
    List<SafetensorsReader> files = new ArrayList<>();
    Checkpoint checkpoint = new Checkpoint(path, info, files);
    try {
      for (StoredFile stored : info.files()) {
        SafetensorsReader file = SafetensorsReader.open(path.resolve(stored.name()));
        files.add(file);
        file.verify(stored.bytes(), stored.sha256());
      }
      return checkpoint;
    } catch (CheckpointException e) {
      checkpoint.close();
      throw e;
    }
  }

  public Path path() {
    return path;
  }

  public CheckpointInfo info() {
    return info;
  }

  /**
   * Puts every tensor back. Names, types and shapes must match the run's own list exactly, replay
   * aside, which may be absent as a whole.
   */
  public List<Part> restore(Engine engine) {
    return load(engine, false);
  }

  /** Loads only what the engine asks for: a policy needs no optimizer. */
  public List<Part> restorePart(Engine engine) {
    return load(engine, true);
  }

  private List<Part> load(Engine engine, boolean partial) {
    List<Tensor> wanted =
        engine.tensors().stream().filter(each -> !each.replay() || info.hasReplay()).toList();
    checkMatch(wanted, partial);
    ByteBuffer chunk = ByteBuffer.allocateDirect(CHUNK_BYTES);
    for (Tensor tensor : wanted) {
      SafetensorsReader file = fileOf(tensor.name());
      TensorInfo stored = file.tensors().get(tensor.name());
      for (long at = 0; at < tensor.bytes(); at += chunk.limit()) {
        chunk.clear().limit((int) Math.min(chunk.capacity(), tensor.bytes() - at));
        file.read(stored, at, chunk.duplicate());
        engine.write(tensor.index(), at, chunk.slice());
      }
    }
    engine.restored(info.hasReplay());
    return parts(engine.tensors());
  }

  private void checkMatch(List<Tensor> wanted, boolean partial) {
    List<String> missing = new ArrayList<>();
    for (Tensor tensor : wanted) {
      SafetensorsReader file = fileOf(tensor.name());
      if (file == null) {
        missing.add(tensor.name());
        continue;
      }
      TensorInfo stored = file.tensors().get(tensor.name());
      String form = tensor.dtype() + " " + tensor.shape();
      if (!stored.form().equals(form)) {
        throw new CheckpointException(
            path + ": tensor " + tensor.name() + " is " + stored.form() + ", the run has " + form);
      }
    }
    if (!missing.isEmpty()) {
      throw new CheckpointException(path + ": missing " + names(missing));
    }
    List<String> extra = new ArrayList<>();
    for (SafetensorsReader file : files) {
      extra.addAll(file.tensors().keySet());
    }
    wanted.forEach(tensor -> extra.remove(tensor.name()));
    if (!extra.isEmpty() && !partial) {
      throw new CheckpointException(path + ": the run has no " + names(extra));
    }
  }

  private SafetensorsReader fileOf(String tensor) {
    for (SafetensorsReader file : files) {
      if (file.tensors().containsKey(tensor)) {
        return file;
      }
    }
    return null;
  }

  private List<Part> parts(List<Tensor> tensors) {
    Map<String, Part> parts = new TreeMap<>();
    for (Tensor tensor : tensors) {
      String name = tensor.replay() ? "replay" : tensor.name().split("/", 2)[0];
      boolean restored = !tensor.replay() || info.hasReplay();
      Part before = parts.getOrDefault(name, new Part(name, 0, 0, restored));
      parts.put(
          name, new Part(name, before.tensors() + 1, before.bytes() + tensor.bytes(), restored));
    }
    return List.copyOf(parts.values());
  }

  private static String names(List<String> names) {
    String shown = String.join(", ", names.subList(0, Math.min(NAMES_SHOWN, names.size())));
    int more = names.size() - NAMES_SHOWN;
    return more > 0 ? shown + " and " + more + " more" : shown;
  }

  @Override
  public void close() {
    files.forEach(SafetensorsReader::close);
  }
}

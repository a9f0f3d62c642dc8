package dev.millrace.run;

import dev.millrace.checkpoint.CheckpointInfo;
import dev.millrace.checkpoint.CheckpointStore;
import dev.millrace.io.FileErrors;
import dev.millrace.io.FileOps;
import dev.millrace.io.Sha256;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.Optional;

/** Where everything of a run lies. */
public record RunDirectory(Path path) {
  /** In the parent folder, so that the next run of the kind finds it. */
  public static final String SELECTIONS = "selection.json";

  private static final String CHECKPOINTS = "checkpoints";
  private static final DateTimeFormatter STAMP = DateTimeFormatter.ofPattern("yyyyMMdd-HHmmss");

  /** {@code runs/<task>-<algo>/<timestamp>}, not there yet. */
  public static RunDirectory standard(String task, String algo) {
    Path parent = Path.of("runs", task + "-" + algo);
    String stamp = LocalDateTime.now(java.time.ZoneId.systemDefault()).format(STAMP);
    Path path = parent.resolve(stamp);
    for (int i = 2; Files.exists(path); i++) {
      path = parent.resolve(stamp + "-" + i);
    }
    return new RunDirectory(path);
  }

  /** An existing run, to be continued or looked at. */
  public static RunDirectory existing(Path path) {
    RunDirectory directory = new RunDirectory(path);
    if (!Files.isDirectory(path)) {
      throw new BadInputException(
          path
              + (Files.exists(path)
                  ? ": is no folder; expected a run directory"
                  : ": no such run directory"));
    }
    directory.refuseMisplaced();
    if (!Files.isRegularFile(directory.config())) {
      throw new BadInputException(path + ": no run directory: it has no config.yaml");
    }
    return directory;
  }

  /** A file where a folder belongs, or the other way round, would be found late and named badly. */
  private void refuseMisplaced() {
    for (Path folder : List.of(tensorBoard(), path.resolve(CHECKPOINTS))) {
      if (Files.isRegularFile(folder)) {
        throw new BadInputException(folder + ": expected a folder, and it is a file; move it away");
      }
    }
    Path manifest = path.resolve("manifest.json");
    for (Path file : List.of(config(), metrics(), trace(), manifest, RunLock.file(path))) {
      if (Files.isDirectory(file)) {
        throw new BadInputException(file + ": expected a file, and it is a folder; move it away");
      }
    }
  }

  /** Whether config.yaml is another one than that of the run; not if the checkpoint is too old. */
  public boolean hasChangedConfig(CheckpointInfo info) {
    try {
      String known = info.configSha256();
      return !known.isEmpty() && !known.equals(Sha256.of(config()));
    } catch (IOException e) {
      throw new BadInputException("cannot read " + config() + ": " + FileErrors.reason(e));
    }
  }

  /** Nothing that is there is ever written over, and a run is not begun in vain. */
  public void refuseUnusable() {
    if (Files.exists(path)) {
      throw new BadInputException(
          path
              + ": exists already; name another folder with --out, or use: millrace resume "
              + path);
    }
    Path parent = path.toAbsolutePath().getParent();
    while (!Files.exists(parent)) {
      parent = parent.getParent();
    }
    Optional<String> why = FileErrors.whyNothingNew(parent);
    if (why.isPresent()) {
      throw new BadInputException("cannot create " + path + ": " + parent + ": " + why.get());
    }
  }

  /** Makes the folder; fails if it is there. */
  public void create() {
    refuseUnusable();
    try {
      Files.createDirectories(path.toAbsolutePath().getParent());
      Files.createDirectory(path);
    } catch (IOException e) {
      throw new BadInputException("cannot create " + path + ": " + FileErrors.reason(e));
    }
  }

  /** Held by whoever trains in it. */
  public RunLock lock() {
    return RunLock.of(path);
  }

  public Path config() {
    return path.resolve("config.yaml");
  }

  public Path metrics() {
    return path.resolve("metrics.csv");
  }

  public Path tensorBoard() {
    return path.resolve("tb");
  }

  public Path trace() {
    return path.resolve("trace.json");
  }

  /** What was measured between ways of launching programs, by all runs beside this one. */
  public Path selections() {
    return path.toAbsolutePath().resolveSibling(SELECTIONS);
  }

  public CheckpointStore checkpoints() {
    return new CheckpointStore(path.resolve(CHECKPOINTS), FileOps.SYSTEM);
  }
}

package dev.millrace.preflight;

import dev.millrace.config.ConfigLoader;
import dev.millrace.config.RunConfig;
import dev.millrace.core.Core;
import dev.millrace.core.Json;
import dev.millrace.preflight.Finding.Verdict;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import tools.jackson.databind.JsonNode;

/** Looks at everything that can refuse a run before anything large is allocated. */
public final class Preflight {
  private Preflight() {}

  /** Native findings first, then those about the folder that the run would write to. */
  public static PreflightReport run(Core core, RunConfig config, Optional<Path> directory) {
    JsonNode facts = core.preflight(Json.tree(ConfigLoader.tree(config)));
    List<Finding> findings = new ArrayList<>();
    facts.path("findings").forEach(each -> findings.add(Finding.of(each)));
    directory.ifPresent(path -> findings.add(directory(path)));
    return new PreflightReport(findings, facts);
  }

  /** A run never writes into a folder that is there already. */
  private static Finding directory(Path path) {
    if (Files.exists(path)) {
      return refused("RUN_DIRECTORY", path, "it exists already", "name another one with --out");
    }
    Path parent = path.toAbsolutePath().getParent();
    while (parent != null && !Files.exists(parent)) {
      parent = parent.getParent();
    }
    if (parent == null || !Files.isDirectory(parent) || !Files.isWritable(parent)) {
      return refused("RUN_DIRECTORY", path, parent + " is not a writable folder", "use --out");
    }
    return new Finding("RUN_DIRECTORY", Verdict.READY, path.toString(), "can be created", "");
  }

  private static Finding refused(String id, Path subject, String reason, String hint) {
    return new Finding(id, Verdict.REFUSED, subject.toString(), reason, hint);
  }
}

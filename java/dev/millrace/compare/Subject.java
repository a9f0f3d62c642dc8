package dev.millrace.compare;

import dev.millrace.metrics.Spread;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import tools.jackson.databind.JsonNode;

/**
 * One thing that was measured: a bench report or a run.
 *
 * @param facts what must be equal for a comparison to mean anything, by its path
 * @param metrics what was measured
 */
record Subject(Path path, Kind kind, Map<String, String> facts, Map<String, Spread> metrics) {
  /** What it was. */
  enum Kind {
    BENCH,
    RUN
  }

  /** Of everything that a build says about itself, what makes a machine and its libraries. */
  static void addMachine(JsonNode build, Map<String, String> facts) {
    for (String key : List.of("cpu", "cores", "compiler", "mujoco", "blas")) {
      Flat.add("build." + key, build.path(key), Set.of(), facts);
    }
  }
}

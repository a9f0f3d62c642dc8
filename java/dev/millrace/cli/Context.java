package dev.millrace.cli;

import dev.millrace.config.ConfigException;
import dev.millrace.config.ConfigLoader;
import dev.millrace.config.ConfigLoader.Gpu;
import dev.millrace.config.TermCheck;
import dev.millrace.core.Core;
import dev.millrace.preflight.Preflight;
import dev.millrace.preflight.PreflightReport;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import tools.jackson.databind.JsonNode;

/** What every command needs: the native core, loaded when first asked for, and where to print. */
record Context(Supplier<Core> cores, PrintStream out, PrintStream err) {
  Core core() {
    return cores.get();
  }

  /** A resolved configuration whose reward terms exist. */
  ConfigLoader.Resolved load(String nameOrFile, List<String> overrides) {
    return checkTerms(ConfigLoader.load(nameOrFile, overrides, this::gpu));
  }

  /** The configuration itself if its reward terms exist. */
  ConfigLoader.Resolved checkTerms(ConfigLoader.Resolved resolved) {
    TermCheck.check(resolved, rewardTerms(core().describe()));
    return resolved;
  }

  /** The preflight of a resolved configuration; what is wrong with a key names the key's place. */
  PreflightReport preflight(ConfigLoader.Resolved resolved) {
    return placed(resolved, () -> Preflight.run(core(), resolved));
  }

  /** What a step gives; where it refuses a key of the configuration, the key's place is named. */
  static <T> T placed(ConfigLoader.Resolved resolved, Supplier<T> step) {
    try {
      return step.get();
    } catch (ConfigException | IllegalArgumentException e) {
      throw new ConfigException(resolved.placed(e.getMessage()));
    }
  }

  private Gpu gpu() {
    List<String> reasons = new ArrayList<>();
    for (JsonNode backend : core().describe().path("backends")) {
      String name = backend.path("name").asString("");
      if (name.equals("cpu")) {
        continue;
      }
      boolean available = backend.path("available").asBoolean(false);
      String verified = backend.path("verified").asString("");
      // As device: auto, which takes no device that nobody has seen compute.
      if (available && verified.equals("device")) {
        return new Gpu(true, name + " is available");
      }
      reasons.add(
          name
              + ": "
              + (available ? "verified: " + verified : backend.path("reason").asString("")));
    }
    return new Gpu(false, "no GPU (" + String.join("; ", reasons) + ")");
  }

  private static Map<String, List<String>> rewardTerms(JsonNode description) {
    Map<String, List<String>> terms = new LinkedHashMap<>();
    for (JsonNode term : description.path("terms")) {
      if (term.path("kind").asString("").equals("reward")) {
        List<String> params = new ArrayList<>();
        term.path("params").forEach(param -> params.add(param.path("name").asString("")));
        terms.put(term.path("name").asString(""), params);
      }
    }
    return terms;
  }
}

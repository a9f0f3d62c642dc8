package dev.millrace.preflight;

import dev.millrace.config.ConfigLoader;
import dev.millrace.config.RunConfig;
import dev.millrace.core.Core;
import dev.millrace.core.Json;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.databind.JsonNode;

/** Looks at everything that can refuse a run before anything large is allocated. */
public final class Preflight {
  private Preflight() {}

  public static PreflightReport run(Core core, RunConfig config) {
    JsonNode facts = core.preflight(Json.tree(ConfigLoader.tree(config)));
    List<Finding> findings = new ArrayList<>();
    facts.path("findings").forEach(each -> findings.add(Finding.of(each)));
    return new PreflightReport(findings, facts);
  }
}

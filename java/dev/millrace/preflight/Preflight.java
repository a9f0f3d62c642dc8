package dev.millrace.preflight;

import dev.millrace.config.ConfigLoader;
import dev.millrace.config.ConfigLoader.Resolved;
import dev.millrace.core.Core;
import dev.millrace.core.Json;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.databind.JsonNode;

/** Looks at everything that can refuse a run before anything large is allocated. */
public final class Preflight {
  private Preflight() {}

  public static PreflightReport run(Core core, Resolved resolved) {
    JsonNode facts = core.preflight(Json.tree(ConfigLoader.tree(resolved.config())));
    List<Finding> findings = new ArrayList<>();
    facts.path("findings").forEach(each -> findings.add(Finding.of(each)));
    resolved.noEffect().forEach(each -> findings.add(Finding.of(each)));
    return new PreflightReport(findings, facts);
  }
}

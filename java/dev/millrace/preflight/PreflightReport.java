package dev.millrace.preflight;

import java.util.List;
import tools.jackson.databind.JsonNode;

/** All findings at once, and the native part's facts: budget, device, threads. */
public record PreflightReport(List<Finding> findings, JsonNode facts) {
  public PreflightReport {
    findings = List.copyOf(findings);
  }

  public List<Finding> refused() {
    return findings.stream().filter(each -> each.verdict() == Finding.Verdict.REFUSED).toList();
  }
}

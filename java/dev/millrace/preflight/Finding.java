package dev.millrace.preflight;

import tools.jackson.databind.JsonNode;

/** One thing the preflight looked at: what it is about, what came out, why, and what helps. */
public record Finding(String id, Verdict verdict, String subject, String reason, String hint) {
  /** What a finding means for the run. */
  public enum Verdict {
    READY,
    EAGER_ONLY,
    REFUSED
  }

  /** A finding as the native core writes it. */
  public static Finding of(JsonNode json) {
    return new Finding(
        json.path("id").asString(""),
        Verdict.valueOf(json.path("verdict").asString("")),
        json.path("subject").asString(""),
        json.path("reason").asString(""),
        json.path("hint").asString(""));
  }
}

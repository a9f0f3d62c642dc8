package dev.millrace.preflight;

import dev.millrace.config.NoEffect;
import tools.jackson.databind.JsonNode;

/** One thing the preflight looked at: what it is about, what came out, why, and what helps. */
public record Finding(String id, Verdict verdict, String subject, String reason, String hint) {
  /** What a finding means for the run. */
  public enum Verdict {
    READY,
    EAGER_ONLY,
    WARNING,
    REFUSED
  }

  /** Whether a run starts with it, but not as one may think. */
  public boolean isWarning() {
    return verdict == Verdict.EAGER_ONLY || verdict == Verdict.WARNING;
  }

  /** A key that was set in vain. */
  static Finding of(NoEffect found) {
    return new Finding(
        "KEY_WITHOUT_EFFECT", Verdict.WARNING, found.key(), found.reason(), "leave it out");
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

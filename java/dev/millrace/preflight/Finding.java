package dev.millrace.preflight;

/** One thing the preflight looked at: what it is about, what came out, why, and what helps. */
public record Finding(String id, Verdict verdict, String subject, String reason, String hint) {
  /** What a finding means for the run. */
  public enum Verdict {
    READY,
    EAGER_ONLY,
    REFUSED
  }
}

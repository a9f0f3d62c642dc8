package dev.millrace.preflight;

import java.util.stream.Collectors;

/** The preflight refused the run; every refusal is a line of the message. */
public final class RefusedException extends RuntimeException {
  private static final long serialVersionUID = 1;

  public RefusedException(PreflightReport report) {
    super(
        report.refused().stream()
            .map(RefusedException::line)
            .collect(Collectors.joining("\n  ", "refused by preflight:\n  ", "")));
  }

  private static String line(Finding finding) {
    String hint = finding.hint().isEmpty() ? "" : " (" + finding.hint() + ")";
    return finding.id() + " " + finding.subject() + ": " + finding.reason() + hint;
  }
}

package dev.millrace.run;

/** A run that was started and failed; the first error is the message. */
public final class RunFailure extends RuntimeException {
  private static final long serialVersionUID = 1;

  public RunFailure(String message, Throwable cause) {
    super(message, cause);
  }
}

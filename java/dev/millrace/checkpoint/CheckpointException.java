package dev.millrace.checkpoint;

/** A checkpoint that cannot be used, with the reason in one line. */
public final class CheckpointException extends RuntimeException {
  private static final long serialVersionUID = 1;

  public CheckpointException(String message) {
    super(message);
  }

  public CheckpointException(String message, Throwable cause) {
    super(message, cause);
  }
}

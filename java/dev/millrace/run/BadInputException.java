package dev.millrace.run;

/** Something that the user named cannot be used: one line says why. */
public final class BadInputException extends RuntimeException {
  private static final long serialVersionUID = 1;

  public BadInputException(String message) {
    super(message);
  }
}

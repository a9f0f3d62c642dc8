package dev.millrace.core;

/**
 * What native code reports beside bad input. The native side creates it with {@code
 * (Ljava/lang/String;Ljava/lang/String;)V}: the code's name and one clear line.
 */
public final class NativeException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final String code;

  public NativeException(String code, String message) {
    super(message);
    this.code = code;
  }

  /** {@code state}, {@code resource}, {@code unavailable}, {@code device} or {@code bug}. */
  public String code() {
    return code;
  }
}

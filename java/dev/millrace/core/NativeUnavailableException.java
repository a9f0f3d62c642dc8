package dev.millrace.core;

import java.util.List;

/** No native library could be loaded. The message lists every attempt and why it failed. */
public final class NativeUnavailableException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final transient List<String> attempts;

  NativeUnavailableException(String platform, List<String> attempts, Throwable cause) {
    super(message(platform, attempts), cause);
    this.attempts = List.copyOf(attempts);
  }

  /** What was tried, in order: the place and the reason. */
  public List<String> attempts() {
    return attempts;
  }

  private static String message(String platform, List<String> attempts) {
    StringBuilder text =
        new StringBuilder("the native library for ").append(platform).append(" is unavailable:");
    for (String attempt : attempts) {
      text.append("\n  tried ").append(attempt);
    }
    return text.toString();
  }
}

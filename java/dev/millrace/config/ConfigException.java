package dev.millrace.config;

/** A mistake in a configuration, as one line: where, which key, what is wrong. */
public final class ConfigException extends RuntimeException {
  private static final long serialVersionUID = 1;

  public ConfigException(String message) {
    super(message);
  }
}

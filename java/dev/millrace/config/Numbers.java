package dev.millrace.config;

import java.math.BigDecimal;
import java.math.BigInteger;

/** Numbers as people write them. */
final class Numbers {
  private Numbers() {}

  /** A whole number of the core schema: decimal, 0x… or 0o…. */
  static BigInteger integer(String text) {
    if (text.startsWith("0x")) {
      return new BigInteger(text.substring(2), 16);
    }
    if (text.startsWith("0o")) {
      return new BigInteger(text.substring(2), 8);
    }
    return new BigInteger(text.startsWith("+") ? text.substring(1) : text);
  }

  /** The shortest text that reads back as the same number. */
  static String text(double value) {
    if (value == Math.rint(value) && Math.abs(value) < 1e15) {
      return Long.toString((long) value);
    }
    String plain = new BigDecimal(Double.toString(value)).toPlainString();
    return plain.length() <= 12 ? plain : Double.toString(value);
  }
}

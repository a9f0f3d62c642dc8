package dev.millrace.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import org.junit.jupiter.api.Test;

class JsonTest {
  private static String error(String text) {
    String message =
        assertThrows(IllegalArgumentException.class, () -> Json.parse(text)).getMessage();
    assertEquals(1, message.lines().count(), message);
    return message;
  }

  @Test
  void errorsSayWhereAndNothingOfTheParser() {
    assertEquals(
        "1:2: not valid JSON: Unexpected end-of-input: expected close marker for Object",
        error("{"));
    assertEquals("2:1: not valid JSON: Duplicate Object property \"a\"", at("2:1", "a"));
    for (String text : List.of("{", "[", "[1", "{\"a\": [", "{} {}", "{\"a\" 1}", "nope")) {
      String message = error(text);
      assertFalse(message.matches(".*(Source|REDACTED|UNKNOWN).*"), message);
    }
  }

  private static String at(String place, String key) {
    return error("{\"" + key + "\": 1,\n\"" + key + "\": 2}").replaceFirst("^2:\\d+", place);
  }

  @Test
  void anEmptyTextIsNoJson() {
    assertEquals("not valid JSON: it is empty", error(""));
    assertEquals("not valid JSON: it is empty", error(" \n"));
    assertEquals(true, Json.parse("null").isNull());
  }
}

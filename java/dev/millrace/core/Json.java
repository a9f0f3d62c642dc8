package dev.millrace.core;

import dev.millrace.io.FileErrors;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.regex.Pattern;
import tools.jackson.core.JacksonException;
import tools.jackson.core.StreamReadFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/** The one JSON codec: duplicate keys and trailing text are errors, key order is kept. */
public final class Json {
  private static final JsonMapper COMPACT =
      JsonMapper.builder()
          .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
          .enable(tools.jackson.databind.DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .build();
  private static final JsonMapper PRETTY =
      COMPACT.rebuild().enable(SerializationFeature.INDENT_OUTPUT).build();

  /** Where the parser says that something began: never known, for it hides its source. */
  private static final Pattern PARSER_PLACE = Pattern.compile(" ?\\([^()]*\\[Source: .*?\\]\\)");

  private Json() {}

  /** Throws {@link IllegalArgumentException} with one line that says where the text is wrong. */
  public static JsonNode parse(String text) {
    try {
      JsonNode root = COMPACT.readTree(text);
      if (root.isMissingNode()) {
        throw new IllegalArgumentException("not valid JSON: it is empty");
      }
      return root;
    } catch (JacksonException e) {
      String at =
          e.getLocation() == null
              ? ""
              : e.getLocation().getLineNr() + ":" + e.getLocation().getColumnNr() + ": ";
      String problem =
          PARSER_PLACE
              .matcher(e.getOriginalMessage().lines().findFirst().orElse(""))
              .replaceAll("");
      throw new IllegalArgumentException(at + "not valid JSON: " + problem, e);
    }
  }

  /** A whole file; every failure is one line that names it. */
  public static JsonNode read(Path file) throws IOException {
    try {
      return parse(Files.readString(file));
    } catch (IllegalArgumentException e) {
      String message = e.getMessage();
      String colon = Character.isDigit(message.charAt(0)) ? ":" : ": ";
      throw new IOException(file + colon + message, e);
    } catch (IOException e) {
      throw FileErrors.cannot("read", file, e);
    }
  }

  public static String write(Object value) {
    return COMPACT.writeValueAsString(value);
  }

  /** Indented, with a final newline. */
  public static String pretty(Object value) {
    return PRETTY.writeValueAsString(value) + "\n";
  }

  public static byte[] prettyBytes(Object value) {
    return pretty(value).getBytes(StandardCharsets.UTF_8);
  }

  public static ObjectNode object() {
    return JsonNodeFactory.instance.objectNode();
  }

  public static ArrayNode array() {
    return JsonNodeFactory.instance.arrayNode();
  }

  /** Maps, lists, records and plain values as a tree. */
  public static JsonNode tree(Object value) {
    return COMPACT.valueToTree(value);
  }

  public static ObjectNode tree(Map<String, ?> value) {
    return COMPACT.valueToTree(value);
  }
}

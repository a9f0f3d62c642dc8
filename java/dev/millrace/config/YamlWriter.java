package dev.millrace.config;

import java.util.Locale;
import java.util.Map;

/** Writes a resolved configuration as YAML that {@link YamlReader} reads back the same. */
public final class YamlWriter {
  private YamlWriter() {}

  public static String write(RunConfig config) {
    StringBuilder out = new StringBuilder();
    write(RecordBinder.tree(config), "", out);
    return out.toString();
  }

  private static void write(Map<?, ?> tree, String indent, StringBuilder out) {
    tree.forEach(
        (key, value) -> {
          out.append(indent).append(text(key)).append(':');
          if (value instanceof Map<?, ?> map && !map.isEmpty()) {
            out.append('\n');
            write(map, indent + "  ", out);
          } else {
            out.append(' ').append(value instanceof Map ? "{}" : text(value)).append('\n');
          }
        });
  }

  /** One value, as YAML has it. */
  static String text(Object value) {
    if (value instanceof Double number) {
      return Numbers.text(number);
    }
    if (!(value instanceof String text)) {
      return String.valueOf(value);
    }
    boolean plain = text.matches("[A-Za-z_][A-Za-z0-9_]*") && !text.matches("(?i)true|false|null");
    if (plain) {
      return text;
    }
    StringBuilder quoted = new StringBuilder("\"");
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        quoted.append('\\').append(c);
      } else if (c < ' ' || c == 0x7f) {
        quoted.append(String.format(Locale.ROOT, "\\x%02x", (int) c));
      } else {
        quoted.append(c);
      }
    }
    return quoted.append('"').toString();
  }
}

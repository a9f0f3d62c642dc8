package dev.millrace.compare;

import dev.millrace.core.Json;
import java.util.Map;
import java.util.Set;
import tools.jackson.databind.JsonNode;

/** Turns a tree of JSON into its values by their paths. */
final class Flat {
  private Flat() {}

  /** Adds every value under a path but those that lie at, or below, one of the ignored paths. */
  static void add(String path, JsonNode node, Set<String> ignored, Map<String, String> into) {
    if (ignored.contains(path) || node.isMissingNode()) {
      return;
    }
    if (node.isObject() && !node.isEmpty()) {
      node.properties()
          .forEach(each -> add(join(path, each.getKey()), each.getValue(), ignored, into));
    } else {
      into.put(path, node.isString() ? node.asString() : Json.write(node));
    }
  }

  static String join(String path, String key) {
    return path.isEmpty() ? key : path + "." + key;
  }
}

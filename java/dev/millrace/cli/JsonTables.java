package dev.millrace.cli;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import tools.jackson.databind.JsonNode;

/** Shows JSON that the core made as tables: lists of objects as rows, other values by key. */
final class JsonTables {
  private JsonTables() {}

  static void print(JsonNode node, PrintStream out) {
    if (node.isArray()) {
      rows(node).print(out);
      return;
    }
    Table values = new Table("key", "value");
    List<String> tables = new ArrayList<>();
    node.properties()
        .forEach(
            each -> {
              JsonNode value = each.getValue();
              if (value.isArray() && !value.isEmpty() && value.get(0).isObject()) {
                tables.add(each.getKey());
              } else {
                flatten(each.getKey(), value, values);
              }
            });
    values.print(out);
    for (String name : tables) {
      out.println();
      out.println(name);
      rows(node.get(name)).print(out);
    }
  }

  private static void flatten(String key, JsonNode value, Table table) {
    if (value.isObject() && !value.isEmpty()) {
      value
          .properties()
          .forEach(each -> flatten(key + "." + each.getKey(), each.getValue(), table));
    } else {
      table.row(key, Reports.cell(value));
    }
  }

  private static Table rows(JsonNode array) {
    Set<String> columns = new LinkedHashSet<>();
    for (JsonNode row : array) {
      columns.addAll(row.propertyNames());
    }
    if (columns.isEmpty()) {
      Table table = new Table("value");
      array.forEach(each -> table.row(Reports.cell(each)));
      return table;
    }
    Table table = new Table(columns.toArray(String[]::new));
    for (JsonNode row : array) {
      table.row(columns.stream().map(column -> Reports.cell(row.get(column))).toArray());
    }
    return table;
  }
}

package dev.millrace.compare;

import dev.millrace.core.Json;
import dev.millrace.metrics.Spread;
import dev.millrace.run.BadInputException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import tools.jackson.databind.JsonNode;

/**
 * Reads what a bench wrote, or an object of several such reports. What was measured are {@code
 * medians} with their {@code iqr} or {@code rounds}, and what has a measurement's name; everything
 * else is configuration.
 */
final class BenchReport {
  private static final Set<String> AROUND_MEDIANS = Set.of("medians", "iqr", "rounds");
  // What a whole time is made of, each measured once: too rough to judge by.
  private static final Set<String> PARTS = Set.of("ops", "without");
  private static final Pattern MEASURED =
      Pattern.compile(
          ".*_(us|ms|ns|mean|share)|.*_per_s|ratio|ready_ticks|host_bytes|host_batch_bytes|device_bytes");

  private final Map<String, String> facts = new LinkedHashMap<>();
  private final Map<String, Spread> metrics = new LinkedHashMap<>();

  private BenchReport() {}

  static Subject read(Path file) throws IOException {
    JsonNode root = Json.read(file);
    BenchReport report = new BenchReport();
    if (root.isObject()) {
      report.add("", root);
    }
    if (report.metrics.isEmpty()) {
      throw new BadInputException(file + ": no bench report: nothing in it was measured");
    }
    return new Subject(file, Subject.Kind.BENCH, report.facts, report.metrics);
  }

  private void add(String path, JsonNode node) {
    JsonNode medians = node.path("medians");
    for (Map.Entry<String, JsonNode> each : medians.properties()) {
      if (numbers(each.getValue()).length == 1) {
        metrics.put(Flat.join(path, each.getKey()), spread(node, each.getKey()));
      }
    }
    for (Map.Entry<String, JsonNode> each : node.properties()) {
      if (!medians.isObject() || !AROUND_MEDIANS.contains(each.getKey())) {
        addEntry(path, each.getKey(), each.getValue());
      }
    }
  }

  private void addEntry(String path, String key, JsonNode value) {
    String name = Flat.join(path, key);
    double[] values = numbers(value);
    if (key.equals("commit")) {
      return; // what a comparison is about, most of the time
    }
    if (PARTS.contains(key) && value.isArray()) {
      return;
    }
    if (key.equals("config")) {
      Flat.add(name, value, Set.of(), facts); // whatever its keys are called
    } else if (key.equals("build")) {
      Subject.addMachine(value, facts);
    } else if (key.equals("facts")) { // of a bench of training: most of it are sizes and counters
      Set<String> measured = Set.of(name + ".threads.choice.measured");
      Flat.add(name + ".threads", value.path("threads"), measured, facts);
    } else if (values.length > 0 && MEASURED.matcher(key).matches()) {
      metrics.put(name, Spread.of(values));
    } else if (value.isObject() && !value.isEmpty()) {
      add(name, value);
    } else {
      Flat.add(name, value, Set.of(), facts);
    }
  }

  private static Spread spread(JsonNode report, String key) {
    double median = numbers(report.path("medians").path(key))[0];
    double[] iqr = numbers(report.path("iqr").path(key));
    if (iqr.length == 1) {
      return new Spread(median, iqr[0]);
    }
    double[] rounds =
        report
            .path("rounds")
            .valueStream()
            .flatMapToDouble(round -> Arrays.stream(numbers(round.path(key))))
            .toArray();
    return new Spread(median, rounds.length == 0 ? Double.NaN : Spread.of(rounds).iqr());
  }

  /** A finite number, or a list of nothing else; no numbers for everything that is neither. */
  private static double[] numbers(JsonNode value) {
    List<JsonNode> nodes = value.isArray() ? value.valueStream().toList() : List.of(value);
    double[] numbers =
        nodes.stream()
            .filter(JsonNode::isNumber)
            .mapToDouble(node -> Double.parseDouble(node.asString()))
            .filter(Double::isFinite)
            .toArray();
    return numbers.length == nodes.size() ? numbers : new double[0];
  }
}

package dev.millrace.compare;

import dev.millrace.manifest.ManifestVerifier;
import dev.millrace.metrics.MetricsTable;
import dev.millrace.metrics.Spread;
import dev.millrace.run.BadInputException;
import dev.millrace.run.RunDirectory;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import tools.jackson.databind.JsonNode;

/**
 * Reads a finished run: configuration and machine from its manifest, measurements from the second
 * half of its metrics.csv, which is past the warm-up.
 */
final class RunReport {
  private static final Pattern MEASURED = Pattern.compile(".*_(us|ms|ns|s)|.*return.*");
  private static final String CLOCK = "elapsed_s";

  /** How long it runs, what it writes about itself and when: nothing that makes it faster. */
  private static final Set<String> FREE = Set.of("run", "log", "checkpoint");

  private static final Set<String> FOUND_OUT =
      Set.of(
          "device.reason",
          "device.physics.first_bad",
          "device.physics.unstable",
          "device.physics.unstable_causes",
          "device.threads.choice.measured");

  private RunReport() {}

  static Subject read(Path directory) throws IOException {
    JsonNode manifest = ManifestVerifier.read(directory);
    JsonNode config = manifest.path("config");
    if (!config.isObject() || !manifest.path("device").isObject()) {
      throw new BadInputException(directory + ": its manifest has no config or no device");
    }
    String status = manifest.path("run").path("status").asString("");
    if (!status.equals("completed") && !status.equals("stopped")) {
      throw new BadInputException(directory + ": the run did not end well (" + status + ")");
    }
    Map<String, String> facts = new LinkedHashMap<>();
    Flat.add("", config, FREE, facts);
    Flat.add("device", manifest.path("device"), FOUND_OUT, facts);
    Subject.addMachine(manifest.path("build"), facts);
    Path csv = new RunDirectory(directory).metrics();
    Map<String, Spread> metrics = metrics(MetricsTable.read(csv));
    refuseChanged(directory, manifest, csv);
    if (metrics.isEmpty()) {
      throw new BadInputException(csv + ": no times, rates or returns in it");
    }
    return new Subject(directory, Subject.Kind.RUN, facts, metrics);
  }

  /** Which rows the second half are depends on all of them. */
  private static void refuseChanged(Path directory, JsonNode manifest, Path csv) {
    String name = csv.getFileName().toString();
    for (String problem : ManifestVerifier.verify(directory, manifest, name)) {
      throw new BadInputException(
          directory + "/" + problem + ": it is not what the run left, which its manifest lists");
    }
  }

  private static Map<String, Spread> metrics(MetricsTable table) {
    Map<String, Spread> metrics = new LinkedHashMap<>();
    for (int c = 0; c < table.columns().size(); c++) {
      String name = table.columns().get(c);
      double[] values = table.secondHalf(c);
      if (values.length > 0 && !name.equals(CLOCK) && MEASURED.matcher(name).matches()) {
        metrics.put(name, Spread.of(values));
      }
    }
    return metrics;
  }
}

package dev.millrace.compare;

import dev.millrace.io.FileErrors;
import dev.millrace.metrics.Spread;
import dev.millrace.run.BadInputException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * One of the two things that are compared: a bench report, a run, or a folder of several of one
 * kind. Of several, each gives one value of a metric.
 */
public final class Side {
  private static final String MANIFEST = "manifest.json";
  private static final String SEED = "seed";

  private final Path path;
  private final List<Subject> subjects;

  private Side(Path path, List<Subject> subjects) {
    this.path = path;
    this.subjects = subjects;
  }

  /** Every failure is one line that names the file. */
  public static Side read(Path path) throws IOException {
    if (path.endsWith(MANIFEST)) {
      return new Side(path, List.of(RunReport.read(path.toAbsolutePath().getParent())));
    }
    if (!Files.isDirectory(path)) {
      return new Side(path, List.of(BenchReport.read(path)));
    }
    return new Side(path, isRun(path) ? List.of(RunReport.read(path)) : readFolder(path));
  }

  private static boolean isRun(Path directory) {
    return Files.exists(directory.resolve(MANIFEST))
        || Files.exists(directory.resolve("config.yaml"));
  }

  private static List<Subject> readFolder(Path folder) throws IOException {
    List<Path> entries;
    try (Stream<Path> list = Files.list(folder)) {
      entries = list.sorted().toList();
    } catch (IOException e) {
      throw FileErrors.cannot("list", folder, e);
    }
    List<Path> runs = entries.stream().filter(Side::isRun).toList();
    List<Path> reports =
        entries.stream().filter(file -> file.toString().endsWith(".json")).toList();
    if (runs.isEmpty() == reports.isEmpty()) {
      String what = runs.isEmpty() ? "neither runs nor bench reports" : "runs and bench reports";
      throw new BadInputException(folder + ": holds " + what);
    }
    List<Subject> subjects = new ArrayList<>();
    for (Path run : runs) {
      subjects.add(RunReport.read(run));
    }
    for (Path report : reports) {
      subjects.add(BenchReport.read(report));
    }
    return subjects;
  }

  public Path path() {
    return path;
  }

  /** Of how many runs or reports it is. */
  public int size() {
    return subjects.size();
  }

  Subject.Kind kind() {
    return subjects.get(0).kind();
  }

  /** The values of every fact, without repetition; of the seeds, all of them in order. */
  Map<String, List<String>> facts() {
    Map<String, List<String>> facts = new LinkedHashMap<>();
    Set<String> keys = new LinkedHashSet<>();
    subjects.forEach(subject -> keys.addAll(subject.facts().keySet()));
    for (String key : keys) {
      Stream<String> values =
          subjects.stream().map(subject -> subject.facts().getOrDefault(key, "absent"));
      facts.put(key, (key.equals(SEED) ? values.sorted() : values.distinct().sorted()).toList());
    }
    return facts;
  }

  /** Whether the runs of this side themselves differ where only seeds may. */
  static boolean isMixed(String key, List<String> values) {
    return !key.equals(SEED) && values.size() > 1;
  }

  /** By name. */
  Map<String, Spread> metrics() {
    Map<String, Spread> metrics = new TreeMap<>();
    if (subjects.size() == 1) {
      metrics.putAll(subjects.get(0).metrics());
      return metrics;
    }
    Set<String> names = new LinkedHashSet<>();
    subjects.forEach(subject -> names.addAll(subject.metrics().keySet()));
    for (String name : names) {
      double[] values =
          subjects.stream()
              .map(subject -> subject.metrics().get(name))
              .filter(Objects::nonNull)
              .mapToDouble(Spread::median)
              .toArray();
      metrics.put(name, Spread.of(values));
    }
    return metrics;
  }
}

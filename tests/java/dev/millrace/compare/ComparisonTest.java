package dev.millrace.compare;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.compare.Comparison.Difference;
import dev.millrace.compare.Comparison.Verdict;
import dev.millrace.run.BadInputException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ComparisonTest {
  private static final String MANIFEST =
      """
      {"run": {"status": "%s"}, "build": {"commit": "%s", "cpu": "%s", "cores": 2},
       "config": {"seed": %d, "run": {"max_ticks": %d}, "log": {"trace": true},
                  "replay": {"pipeline": "%s", "depth": 2}},
       "device": {"effective": "cpu", "reason": "%s",
                  "threads": {"workers": 2, "choice": {"measured": [%d]}}}}
      """;

  @TempDir Path folder;

  private Path bench(String name, String json) throws IOException {
    return Files.writeString(folder.resolve(name), json);
  }

  private Path run(String name, long seed, String pipeline, double... ticksMillis)
      throws IOException {
    Path directory = Files.createDirectories(folder.resolve(name));
    // What may differ differs in every run.
    int any = directory.hashCode();
    String manifest =
        MANIFEST.formatted("completed", any, "Fast One", seed, any, pipeline, any, any);
    Files.writeString(directory.resolve("manifest.json"), manifest);
    StringBuilder csv = new StringBuilder("tick,loss,elapsed_s,time/tick_ms,env_steps_per_s\n");
    csv.append("1,5,1,1000,1\n".repeat(ticksMillis.length));
    for (double millis : ticksMillis) {
      csv.append("2,5,").append(any).append(',').append(millis).append(',').append(1e3 / millis);
      csv.append('\n');
    }
    Files.writeString(directory.resolve("metrics.csv"), csv);
    return directory;
  }

  private static Comparison compare(Path a, Path b, String... varying) throws IOException {
    return Comparison.of(Side.read(a), Side.read(b), List.of(varying), 0.05);
  }

  private static Map<String, Verdict> verdicts(Comparison comparison) {
    return comparison.metrics().stream()
        .collect(Collectors.toMap(Comparison.Metric::name, Comparison.Metric::verdict));
  }

  private Comparison benches(String a, String b) throws IOException {
    return compare(bench("a.json", a), bench("b.json", b));
  }

  private void assertVerdict(Verdict expected, String name, double[] a, double[] b)
      throws IOException {
    String report = "{\"medians\": {\"%s\": %s}, \"iqr\": {\"%s\": %s}}";
    Comparison comparison =
        benches(report.formatted(name, a[0], name, a[1]), report.formatted(name, b[0], name, b[1]));
    assertEquals(expected, verdicts(comparison).get(name));
  }

  private static double[] spread(double median, double iqr) {
    return new double[] {median, iqr};
  }

  @Test
  void aChangeCountsBeyondTheThresholdAndTheNoiseOfBothSides() throws IOException {
    assertVerdict(Verdict.SAME, "gather_us", spread(100, 1), spread(105, 1));
    assertVerdict(Verdict.WORSE, "gather_us", spread(100, 1), spread(106, 1));
    assertVerdict(Verdict.BETTER, "gather_us", spread(100, 1), spread(94, 1));
    assertVerdict(Verdict.SAME, "gather_us", spread(100, 30), spread(129, 1));
    assertVerdict(Verdict.SAME, "gather_us", spread(100, 1), spread(129, 40));
    assertVerdict(Verdict.WORSE, "gather_us", spread(100, 30), spread(131, 1));
  }

  @Test
  void namesSayWhichWayIsGood() throws IOException {
    for (String name :
        List.of("a_us", "a_ms", "a_ns", "a_s", "a_wait", "waits_a_wait", "a_bytes")) {
      assertVerdict(Verdict.WORSE, name, spread(1, 0), spread(2, 0));
    }
    for (String name :
        List.of("a_per_s", "throughput", "return_mean", "ready_ticks", "x.b_per_s")) {
      assertVerdict(Verdict.BETTER, name, spread(1, 0), spread(2, 0));
    }
    assertVerdict(Verdict.DIFFERS, "wraps", spread(1, 0), spread(2, 0));
    assertVerdict(Verdict.SAME, "wraps", spread(1, 0), spread(1, 0));
  }

  @Test
  void zerosAreCompared() throws IOException {
    assertVerdict(Verdict.SAME, "a_ms", spread(0, 0), spread(0, 0));
    assertVerdict(Verdict.WORSE, "a_ms", spread(0, 0), spread(0.5, 0.1));
    assertVerdict(Verdict.SAME, "a_ms", spread(0, 0.6), spread(0.5, 0.1));
    assertVerdict(Verdict.BETTER, "a_ms", spread(0.5, 0.1), spread(0, 0));
  }

  @Test
  void ofABenchEverythingButMeasurementsMustBeEqual() throws IOException {
    String report =
        """
        {"envs": %d, "mode": "%s", "ours_ms": [%s], "commit": "%s", "host_bytes": %d,
         "facts": {"threads": {"workers": 2}, "budget": %d},
         "build": {"cpu": "%s", "version": "%s"}}
        """;
    Comparison equal =
        benches(
            report.formatted(512, "serial", "1, 2, 3", "x", 5, 1, "Fast One", "0"),
            report.formatted(512, "serial", "8, 9", "y", 5, 2, "Fast One", "1"));
    assertEquals(List.of(), equal.refusals());
    assertEquals(Map.of("ours_ms", Verdict.WORSE, "host_bytes", Verdict.SAME), verdicts(equal));
    assertEquals(List.of("ours_ms"), equal.worse());
    Comparison refused =
        benches(
            report.formatted(512, "serial", "1", "x", 5, 1, "Fast One", "0"),
            report.formatted(256, "prefetch", "1", "x", 5, 1, "Slow One", "0"));
    assertEquals(
        List.of(
            new Difference("envs", "512", "256"),
            new Difference("mode", "serial", "prefetch"),
            new Difference("build.cpu", "Fast One", "Slow One")),
        refused.refusals());
    assertEquals(List.of(), refused.metrics());
  }

  @Test
  void partsOfATimeAreNoConfigurationAndAConfigurationIsNoMeasurement() throws IOException {
    String report =
        "{\"medians\": {\"a_us\": 2}, \"config\": {\"lr_final_share\": %s},"
            + " \"ops\": [{\"us\": %s}], \"without\": [{\"kind\": \"gemm\", \"us\": %s}]}";
    Comparison same = benches(report.formatted(1, 2, 3), report.formatted(1, 4, 5));
    assertEquals(List.of(), same.refusals());
    assertEquals(Map.of("a_us", Verdict.SAME), verdicts(same));
    Comparison refused = benches(report.formatted(1, 2, 3), report.formatted(0.5, 2, 3));
    assertEquals(List.of(new Difference("config.lr_final_share", "1", "0.5")), refused.refusals());
  }

  @Test
  void aFileOfSeveralReportsAndRoundsWithoutAnIqrAreRead() throws IOException {
    String reports =
        """
        {"small": {"mode": "serial", "medians": {"a_us": 2, "gone": null},
                   "rounds": [{"a_us": 1}, {"a_us": 2}, {"a_us": 3}]},
         "large": {"medians": {"a_us": 7}, "rounds": []}}
        """;
    Comparison comparison = benches(reports, reports);
    assertEquals(2, comparison.metrics().size());
    assertEquals("large.a_us", comparison.metrics().get(0).name());
    assertTrue(Double.isNaN(comparison.metrics().get(0).a().iqr()));
    assertEquals(1.0, comparison.metrics().get(1).a().iqr());
  }

  @Test
  void aMetricOfOneSideIsSaid() throws IOException {
    Comparison comparison = benches("{\"medians\": {\"a_us\": 2}}", "{\"medians\": {\"b_us\": 2}}");
    assertEquals(Map.of("a_us", Verdict.ONLY_A, "b_us", Verdict.ONLY_B), verdicts(comparison));
    assertEquals(List.of(), comparison.worse());
  }

  @Test
  void ofARunTheSecondHalfOfTimesAndRatesCounts() throws IOException {
    Comparison comparison = compare(run("a", 1, "x", 10, 11, 12), run("b", 1, "x", 20, 21, 22));
    assertEquals(List.of(), comparison.refusals());
    assertEquals(
        Map.of("time/tick_ms", Verdict.WORSE, "env_steps_per_s", Verdict.WORSE),
        verdicts(comparison));
    assertEquals(21.0 / 11, comparison.metrics().get(1).ratio());
  }

  @Test
  void configurationAndMachineOfRunsMustBeEqualUnlessTheyAreTheSubject() throws IOException {
    Path a = run("a", 1, "device_resident", 10, 11);
    Path b = run("b", 2, "cpu_pinned_double_buffer", 10, 11);
    Difference pipeline =
        new Difference("replay.pipeline", "device_resident", "cpu_pinned_double_buffer");
    assertEquals(List.of(new Difference("seed", "1", "2"), pipeline), compare(a, b).refusals());
    Comparison meant = compare(a, b, "replay.pipeline", "seed");
    assertEquals(List.of(), meant.refusals());
    assertTrue(meant.subject().contains(pipeline));
    assertEquals(List.of(pipeline), compare(a, b, "pipeline", "seed").subject().subList(1, 2));
    var typo = assertThrows(BadInputException.class, () -> compare(a, b, "replay.pipe"));
    assertTrue(typo.getMessage().contains("replay.pipe"), typo.getMessage());
    assertEquals(2, compare(a, b, "replay", "seed").subject().size());
  }

  @Test
  void ofAFolderEachRunGivesOneValue() throws IOException {
    for (int i = 1; i <= 5; i++) {
      run("a/" + i, i, "x", 10 + i, 10 + i, 500);
      run("b/" + (6 - i), i, "x", 20 + i, 20 + i, 500);
    }
    Comparison comparison = compare(folder.resolve("a"), folder.resolve("b"));
    assertEquals(List.of(), comparison.refusals());
    Comparison.Metric tick = comparison.metrics().get(1);
    assertEquals("time/tick_ms", tick.name());
    assertEquals(13, tick.a().median());
    assertEquals(2, tick.a().iqr());
    assertEquals(23, tick.b().median());
    assertEquals(Verdict.WORSE, tick.verdict());
  }

  @Test
  void aFolderOfUnequalRunsIsRefusedEvenAgainstItself() throws IOException {
    run("a/1", 1, "x", 10, 10);
    run("a/2", 1, "y", 10, 10);
    Path a = folder.resolve("a");
    assertEquals(
        List.of(new Difference("replay.pipeline", "x / y", "x / y")), compare(a, a).refusals());
  }

  @Test
  void whatCannotBeComparedIsNamed() throws IOException {
    Path run = run("run", 1, "x", 10, 10);
    Path report = bench("report.json", "{\"medians\": {\"a_us\": 2}}");
    assertBad("not comparable", run, report);
    assertBad("report.json: no bench report", bench("report.json", "[1, {\"medians\": 3}]"), run);
    assertBad("report.json:1:", bench("report.json", "{\"medians\": {"), run);
    assertBad("report.json: not valid", bench("report.json", "[".repeat(100_000)), run);
    assertBad("no bench report", bench("report.json", "{\"medians\":{\"a\":1e999}}"), run);
    assertBad("none: no such file", folder.resolve("none"), run);
    assertBad("empty: holds neither", Files.createDirectory(folder.resolve("empty")), run);
    assertBad("holds runs and bench reports", folder, run);
    Files.writeString(run.resolve("metrics.csv"), "tick\n1\n");
    assertBad("metrics.csv: no times", run, run);
    Files.delete(run.resolve("metrics.csv"));
    assertBad("metrics.csv: no such file", run, run);
    Files.writeString(run.resolve("manifest.json"), "{\"config\": 3}");
    assertBad("run: its manifest has no config", run, run);
    Files.writeString(
        run.resolve("manifest.json"), MANIFEST.formatted("failed", 1, 1, 1, 1, 1, 1, 1));
    assertBad("did not end well (failed)", run, run);
    Files.move(run.resolve("manifest.json"), run.resolve("config.yaml"));
    assertBad("manifest.json: no such file", run, run);
  }

  private static void assertBad(String part, Path a, Path b) {
    Exception failure = assertThrows(Exception.class, () -> compare(a, b));
    assertTrue(
        failure instanceof BadInputException || failure instanceof IOException, failure::toString);
    assertEquals(1, failure.getMessage().lines().count(), failure.getMessage());
    assertTrue(failure.getMessage().contains(part), failure.getMessage());
  }
}

package dev.millrace.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.run.BadInputException;
import dev.millrace.trace.TraceSummary.Row;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TraceSummaryTest {
  private static final String WINDOW = "learner/update_window";
  private static final String ADD = "replay/add";
  private static final String GATHER = "gpu/replay_pipeline_batch_gather";

  @TempDir Path folder;

  private TraceSummary read(String json, double warmUpSeconds) throws IOException {
    return TraceSummary.read(Files.writeString(folder.resolve("trace.json"), json), warmUpSeconds);
  }

  private TraceSummary read(String... events) throws IOException {
    return read("{\"traceEvents\": [" + String.join(",\n", events) + "]}", 0);
  }

  private static String span(String name, double begin, double end, int thread) {
    return "{\"ph\":\"X\",\"name\":\"%s\",\"ts\":%s,\"dur\":%s,\"pid\":1,\"tid\":%d}"
        .formatted(name, begin, end - begin, thread);
  }

  private static Map<String, Row> rows(TraceSummary summary) {
    return summary.spans().stream().collect(Collectors.toMap(Row::name, Function.identity()));
  }

  private static Map<String, Double> exposed(TraceSummary summary) {
    return summary.exposed().stream()
        .collect(Collectors.toMap(TraceSummary.Exposed::name, TraceSummary.Exposed::microsPerTick));
  }

  @Test
  void timesAndTracksOfAName() throws IOException {
    String thread = "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":%d,\"args\":%s}";
    TraceSummary summary =
        read(
            span("a", 0, 1, 1),
            "{\"ph\":\"C\",\"name\":\"replay_size\",\"ts\":1,\"args\":{\"value\":3}}",
            thread.formatted(1, "{\"name\":\"learner\"}"),
            span("a", 5, 15, 2),
            span("a", 20, 22, 1));
    Row row = summary.spans().get(0);
    assertEquals(1, summary.spans().size());
    assertEquals(3, row.count());
    assertEquals(2, row.medianMicros());
    assertEquals(8.4, row.p90Micros(), 1e-9);
    assertEquals(9.84, row.p99Micros(), 1e-9);
    assertEquals(0.013, row.totalMillis(), 1e-9);
    assertEquals(List.of("learner", "thread 2"), row.tracks());
    assertEquals(13.0 / 22, row.timeShare(), 1e-9);
    assertTrue(Double.isNaN(row.insideShare()));
    assertTrue(Double.isNaN(summary.deviceBusyShare()));
    assertEquals(22e-6, summary.seconds(), 1e-12);
    assertEquals(List.of(), summary.exposed());
    assertNull(summary.broken());
  }

  @Test
  void aSpanLiesInsideOneWindowOrNot() throws IOException {
    TraceSummary summary =
        read(
            span(WINDOW, 200, 300, 1), // the file's order is not that of time
            span(ADD, 110, 120, 2), // inside
            span(ADD, 100, 150.001, 2), // ends a nanosecond late
            span(WINDOW, 100, 150, 1),
            span(ADD, 100, 150, 2), // exactly the window
            span(ADD, 140, 210, 2), // from one window into the next
            span(ADD, 50, 60, 2), // before all
            span(ADD, 400, 410, 2)); // after all
    assertEquals(2.0 / 6, rows(summary).get(ADD).insideShare(), 1e-12);
    assertTrue(Double.isNaN(rows(summary).get(WINDOW).insideShare()));
  }

  @Test
  void theDeviceIsBusyWhereAnyOfItsSpansRuns() throws IOException {
    TraceSummary summary =
        read(
            span(ADD, 0, 100, 1),
            span("gpu/learner_update", 30, 50, 2),
            span(GATHER, 10, 20, 3),
            span("gpu/policy", 45, 60, 4)); // 5 of it together with the update
    assertEquals(0.4, summary.deviceBusyShare(), 1e-9);
  }

  @Test
  void exposedIsTheTimeInsideGapsOfATick() throws IOException {
    TraceSummary summary =
        read(
            span(WINDOW, 0, 100, 1),
            span(ADD, 90, 110, 2), // 10 of it in the gap of tick 1
            span(GATHER, 105, 125, 3), // 20, of which 5 together with the one before
            span(WINDOW, 200, 300, 1),
            span(ADD, 210, 220, 2), // all inside
            span(WINDOW, 400, 500, 1),
            span(ADD, 520, 590, 2), // 70 in the gap of tick 3
            span(WINDOW, 600, 700, 1),
            span(ADD, 720, 790, 2)); // no tick ends after it
    assertEquals(3, summary.ticks());
    assertEquals(Map.of(ADD, 10.0, GATHER, 0.0, "any of these", 25.0), exposed(summary));
  }

  @Test
  void aSpanOverSeveralTicksIsExposedInEach() throws IOException {
    TraceSummary summary =
        read(
            span(WINDOW, 0, 10, 1),
            span(WINDOW, 20, 30, 1),
            span(WINDOW, 40, 50, 1),
            span(ADD, 5, 45, 2),
            span(ADD, 12, 18, 3)); // hidden by the other one
    assertEquals(2, summary.ticks());
    assertEquals(10.0, exposed(summary).get("any of these"));
  }

  @Test
  void warmUpIsLeftOut() throws IOException {
    double second = 1e6;
    String json =
        "["
            + String.join(
                ",",
                span(ADD, 5 * second, 5 * second + 9, 2),
                span(WINDOW, 6 * second, 6.5 * second, 1),
                span(ADD, 6.9 * second, 6.9 * second + 100, 2),
                span(WINDOW, 7 * second, 7.5 * second, 1),
                span(ADD, 7.1 * second, 7.1 * second + 3, 2),
                span(ADD, 7.6 * second, 7.6 * second + 5, 2),
                span(WINDOW, 8 * second, 8.5 * second, 1))
            + "]";
    assertEquals(2, read(json, 0).ticks());
    TraceSummary summary = read(json, 2);
    assertEquals(1, summary.ticks());
    assertEquals(2, rows(summary).get(ADD).count());
    assertEquals(0.5, rows(summary).get(ADD).insideShare());
    assertEquals(5.0, exposed(summary).get(ADD), 1e-9);
    assertEquals(List.of(), read(json, 100).spans());
  }

  @Test
  void aFileThatBreaksOffGivesWhatItHolds() throws IOException {
    String event = span("a", 1, 2, 1) + ",\n";
    String start = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
    String whole =
        start
            + event.repeat(3)
            + "{\"ph\":\"M\",\"name\":\"dropped\",\"pid\":1,\"tid\":0,\"args\":{\"records\":7}}\n]}";
    assertEquals(7, read(whole, 0).dropped());
    for (int length = start.indexOf('[') + 1; length < whole.length(); length++) {
      TraceSummary summary = read(whole.substring(0, length), 0);
      assertNotNull(summary.broken(), whole.substring(0, length));
      int complete = Math.max(0, length - start.length() + 2) / event.length();
      int count = summary.spans().isEmpty() ? 0 : summary.spans().get(0).count();
      assertEquals(Math.min(3, complete), count, whole.substring(0, length));
    }
  }

  @Test
  void strangeEventsAreSkipped() throws IOException {
    TraceSummary summary =
        read(
            "null",
            "[[1], {}]",
            "{\"ph\":\"X\",\"name\":\"no times\"}",
            "{\"ph\":\"X\",\"name\":{\"a\":[1]},\"ts\":\"x\",\"dur\":[2],\"args\":[3]}",
            "{\"ph\":\"X\",\"name\":\"negative\",\"ts\":1,\"dur\":-1}",
            "{\"ph\":\"B\",\"name\":\"open\",\"ts\":1}",
            "{\"args\":{\"deep\":{\"name\":[{}]}},\"dur\":2,\"ts\":1,\"name\":\"a\",\"ph\":\"X\"}");
    assertEquals(List.of("a"), summary.spans().stream().map(Row::name).toList());
    assertNull(summary.broken());
  }

  @Test
  void whatIsNoTraceIsNamed() throws IOException {
    for (String text : List.of("", "{}", "3", "nonsense", "{\"traceEvents\": 3}", "\u0000")) {
      var failure = assertThrows(BadInputException.class, () -> read(text, 0));
      assertTrue(failure.getMessage().contains("trace.json: no trace"), failure.getMessage());
      assertEquals(1, failure.getMessage().lines().count());
    }
    assertThrows(IOException.class, () -> TraceSummary.read(folder.resolve("none"), 0));
    assertThrows(BadInputException.class, () -> TraceSummary.read(folder, 0));
  }
}

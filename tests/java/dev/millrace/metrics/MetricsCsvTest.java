package dev.millrace.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.metrics.MetricsCsv.Row;
import dev.millrace.run.BadInputException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MetricsCsvTest {
  @TempDir Path folder;
  private Path file;

  @BeforeEach
  void name() {
    file = folder.resolve("metrics.csv");
  }

  private static Row row(long tick, Object... metrics) {
    Map<String, Double> map = new LinkedHashMap<>();
    for (int i = 0; i < metrics.length; i += 2) {
      map.put((String) metrics[i], (Double) metrics[i + 1]);
    }
    return new Row(tick, tick * 4, tick * 2, map);
  }

  private void write(MetricsCsv csv, Row... rows) throws IOException {
    try (csv) {
      for (Row row : rows) {
        csv.append(row);
      }
    }
  }

  private void assertFile(String... lines) throws IOException {
    assertEquals(String.join("\n", lines) + "\n", Files.readString(file));
  }

  @Test
  void theFirstRowDecidesTheColumns() throws IOException {
    write(
        MetricsCsv.create(file),
        row(10, "b", 1.5, "a", Double.NaN, "t_s", 3.0),
        row(20, "a", 0.1, "b", 1e-9, "t_s", null));
    assertFile("tick,env_steps,updates,b,a,t_s", "10,40,20,1.5,,3", "20,80,40,1.0E-9,0.1,");
  }

  @Test
  void aLateMetricGetsAColumnOfItsOwn() throws IOException {
    write(MetricsCsv.create(file), row(10, "a", 1.0), row(20, "a", 2.0, "z", 5.0), row(30));
    assertFile("tick,env_steps,updates,a,z", "10,40,20,1,", "20,80,40,2,5", "30,120,60,,");
  }

  @Test
  void resumeDropsLaterAndTornRows() throws IOException {
    write(MetricsCsv.create(file), row(10, "a", 1.0), row(20, "a", 2.0), row(30, "a", 3.0));
    Files.writeString(file, Files.readString(file) + "40,16");
    write(MetricsCsv.resume(file, 20), row(30, "a", 7.0));
    assertFile("tick,env_steps,updates,a", "10,40,20,1", "20,80,40,2", "30,120,60,7");
    write(MetricsCsv.resume(file, 30), row(40, "a", 8.0, "n", 1.0));
    assertFile(
        "tick,env_steps,updates,a,n",
        "10,40,20,1,",
        "20,80,40,2,",
        "30,120,60,7,",
        "40,160,80,8,1");
  }

  @Test
  void resumeWithoutAFileStartsOne() throws IOException {
    write(MetricsCsv.resume(file, 20), row(30, "a", 7.0));
    assertFile("tick,env_steps,updates,a", "30,120,60,7");
    Files.writeString(file, "tick,env");
    write(MetricsCsv.resume(file, 20), row(30, "a", 7.0));
    assertFile("tick,env_steps,updates,a", "30,120,60,7");
  }

  @Test
  void aForeignFileIsRefusedAndKept() throws IOException {
    Files.writeString(file, "time,price\n1,2\n");
    BadInputException e = assertThrows(BadInputException.class, () -> MetricsCsv.resume(file, 20));
    String expected =
        "expected a header that begins with tick,env_steps,updates, got \"time,price\"";
    assertTrue(e.getMessage().startsWith(file + ": no metrics of a run: " + expected));
    assertFile("time,price", "1,2");
  }

  @Test
  void aLineThatIsNoRowIsRefusedAndKept() throws IOException {
    for (String line : List.of("x,40,20,1", "", "10,40,20", "10,40,20,1,2")) {
      String[] lines = {"tick,env_steps,updates,a", "5,20,10,1", line, "20,80,40,2", "30,120"};
      Files.writeString(file, String.join("\n", lines) + "\n");
      BadInputException e =
          assertThrows(BadInputException.class, () -> MetricsCsv.resume(file, 20));
      String expected = ":3: no row of a run: expected a tick first and 4 cells, got \"" + line;
      assertTrue(e.getMessage().startsWith(file + expected), e.getMessage());
      assertFile(lines);
    }
  }

  @Test
  void aFileThatCannotBeReadIsNamed() throws IOException {
    Files.write(file, new byte[] {'t', (byte) 0xff, '\n'});
    IOException e = assertThrows(IOException.class, () -> MetricsCsv.resume(file, 20));
    assertEquals("cannot read " + file + ": it is not UTF-8 text", e.getMessage());
    Files.delete(file);
    Files.createDirectories(file.resolve("full"));
    e = assertThrows(IOException.class, () -> MetricsCsv.resume(file, 20));
    assertEquals("cannot read " + file + ": Is a directory", e.getMessage());
  }

  @Test
  void aFullDiskIsOneClearLine() throws IOException {
    Files.createSymbolicLink(file, Path.of("/dev/full"));
    MetricsCsv csv = MetricsCsv.create(file);
    IOException e = assertThrows(IOException.class, () -> csv.append(row(1, "a", 1.0)));
    assertEquals("cannot write " + file + ": No space left on device", e.getMessage());
    csv.close();
  }
}

package dev.millrace.metrics;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SpreadTest {
  @TempDir Path folder;

  @Test
  void mediansAndQuartilesLieBetweenTheNearestValues() {
    assertEquals(new Spread(2.5, 1.5), Spread.of(4, 1, 3, 2));
    assertEquals(new Spread(3, 2), Spread.of(5, 1, 3, 2, 4));
    assertEquals(new Spread(7, Double.NaN), Spread.of(7));
    assertEquals(1.9, Spread.quantile(new double[] {1, 2}, 0.9), 1e-12);
  }

  @Test
  void aTableIsReadAndItsSecondHalfCounts() throws IOException {
    Path file = folder.resolve("metrics.csv");
    Files.writeString(file, "tick,a_ms\n10,9\n20,\n30,1\n40,2\n50,3\n");
    MetricsTable table = MetricsTable.read(file);
    assertEquals(List.of("tick", "a_ms"), table.columns());
    assertEquals(5, table.rows().size());
    assertArrayEquals(new double[] {1, 2, 3}, table.secondHalf(1));
    Files.writeString(file, "");
    assertEquals(List.of(), MetricsTable.read(file).rows());
  }

  @Test
  void aDamagedTableIsNamedWithTheLine() throws IOException {
    Path file = folder.resolve("metrics.csv");
    Files.writeString(file, "tick,a_ms\n10,9\n20\n");
    var columns = assertThrows(IOException.class, () -> MetricsTable.read(file));
    assertEquals(file + ":3: 1 cells under 2 columns", columns.getMessage());
    Files.writeString(file, "tick,a_ms\n10,x\n");
    var number = assertThrows(IOException.class, () -> MetricsTable.read(file));
    assertEquals(file + ":2: not a finite number: x", number.getMessage());
    Files.writeString(file, "tick,a_ms\n10,9\n20,1e999\n30,1\n");
    var large = assertThrows(IOException.class, () -> MetricsTable.read(file));
    assertEquals(file + ":3: not a finite number: 1e999", large.getMessage());
    Files.writeString(file, "tick,a_ms\n10,9\n20,3");
    var torn = assertThrows(IOException.class, () -> MetricsTable.read(file));
    assertEquals(file + ":3: the line has no end: it was cut off", torn.getMessage());
    Files.write(file, new byte[] {(byte) 0xff, '\n'});
    var text = assertThrows(IOException.class, () -> MetricsTable.read(file));
    assertEquals("cannot read " + file + ": it is not UTF-8 text", text.getMessage());
  }
}

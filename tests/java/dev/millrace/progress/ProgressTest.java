package dev.millrace.progress;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ProgressTest {
  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
  private final PrintStream out = new PrintStream(bytes, true, StandardCharsets.UTF_8);

  private static Status status(long tick, double seconds) {
    return new Status(
        "cartpole_swingup",
        tick,
        1000,
        seconds,
        0,
        tick * 16,
        tick * 4,
        1234.56,
        78.9,
        tick < 100 ? Double.NaN : 350.25,
        tick < 100 ? Double.NaN : 500,
        tick / 1000.0,
        Map.of("physics", 1.25, "learner", 12.34));
  }

  private String text() {
    return bytes.toString(StandardCharsets.UTF_8);
  }

  @Test
  void plainLinesAreTheseExactly() {
    Progress progress = new PlainProgress(out);
    progress.update(status(50, 1));
    progress.update(status(100, 2));
    progress.note("a note");
    progress.update(status(250, 6.5));
    progress.update(status(300, 7));
    progress.finish();
    progress.finish();
    assertEquals(
        """
        tick 50/1,000  0:01  eta 0:19  1,235 env steps/s  78.9 updates/s  return -  length -  \
        replay 5 %  [learner 12.3 ms, physics 1.3 ms]
        a note
        tick 250/1,000  0:07  eta 0:20  1,235 env steps/s  78.9 updates/s  return 350.3  \
        length 500.0  replay 25 %  [learner 12.3 ms, physics 1.3 ms]
        tick 300/1,000  0:07  eta 0:16  1,235 env steps/s  78.9 updates/s  return 350.3  \
        length 500.0  replay 30 %  [learner 12.3 ms, physics 1.3 ms]
        """,
        text());
  }

  @Test
  void theLiveBlockIsRedrawnInPlace() {
    Progress progress = new LiveProgress(out);
    progress.update(status(50, 1));
    assertTrue(!text().contains("\033[9A"));
    progress.update(status(100, 2));
    progress.note("a note");
    progress.finish();
    int lines = LiveProgress.lines(status(50, 1)).size();
    assertEquals(9, lines);
    assertEquals(3, text().split("\033\\[9A\033\\[J", -1).length);
    assertTrue(text().contains("\033[Ja note\n"));
  }

  @Test
  void whicheverLimitIsNearerCounts() {
    Status both = new Status("t", 10, 100, 30, 60, 0, 0, 0, 0, 0, 0, 0, Map.of());
    assertEquals(0.5, both.fraction());
    assertEquals(30, both.secondsLeft());
    Status none = new Status("t", 10, 0, 30, 0, 0, 0, 0, 0, 0, 0, 0, Map.of());
    assertTrue(Double.isNaN(none.secondsLeft()));
    assertEquals("-", Figures.duration(none.secondsLeft()));
    assertEquals("1:01:01", Figures.duration(3661));
    assertEquals("##..", Figures.bar(0.5, 4));
  }
}

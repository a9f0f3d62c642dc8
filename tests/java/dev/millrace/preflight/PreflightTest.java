package dev.millrace.preflight;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.config.ConfigLoader;
import dev.millrace.config.ConfigLoader.Resolved;
import dev.millrace.run.FakeCore;
import java.util.List;
import org.junit.jupiter.api.Test;

class PreflightTest {
  private static final Resolved CONFIG =
      ConfigLoader.load("g1_walk_flat", List.of("profile=laptop"), () -> null);

  @Test
  void everyRefusalIsALine() {
    FakeCore core = new FakeCore().refuse("INGRESS_DEPTH", "0 < 1").refuse("BUDGET_HOST", "9 > 8");
    PreflightReport report = Preflight.run(core, CONFIG);
    assertEquals(2, report.refused().size());
    String message = new RefusedException(report).getMessage();
    assertEquals(3, message.lines().count());
    assertTrue(message.contains("INGRESS_DEPTH replay: 0 < 1"), message);
  }
}

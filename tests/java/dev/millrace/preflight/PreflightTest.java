package dev.millrace.preflight;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.config.ConfigLoader;
import dev.millrace.config.RunConfig;
import dev.millrace.preflight.Finding.Verdict;
import dev.millrace.run.FakeCore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PreflightTest {
  @TempDir Path folder;

  private static final RunConfig CONFIG =
      ConfigLoader.load("g1_walk_flat", List.of("profile=laptop"), () -> null).config();

  private static Finding directory(Path path) {
    PreflightReport report = Preflight.run(new FakeCore(), CONFIG, Optional.of(path));
    return report.findings().get(report.findings().size() - 1);
  }

  @Test
  void nativeAndOwnFindingsComeTogether() throws Exception {
    Path file = Files.writeString(folder.resolve("file"), "x");
    FakeCore core = new FakeCore().refuse("INGRESS_DEPTH", "0 < 1").refuse("BUDGET_HOST", "9 > 8");
    PreflightReport report = Preflight.run(core, CONFIG, Optional.of(file.resolve("run")));
    assertEquals(3, report.refused().size());
    String message = new RefusedException(report).getMessage();
    assertEquals(4, message.lines().count());
    assertTrue(message.contains("INGRESS_DEPTH replay: 0 < 1"), message);
  }

  @Test
  void theRunDirectoryMustBeNewAndPossible() throws Exception {
    assertEquals(Verdict.READY, directory(folder.resolve("a/b/c")).verdict());
    assertTrue(directory(folder).reason().contains("exists already"));
    Path file = Files.writeString(folder.resolve("file"), "x");
    assertEquals(Verdict.REFUSED, directory(file.resolve("run")).verdict());
  }
}

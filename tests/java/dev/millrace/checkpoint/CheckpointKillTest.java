package dev.millrace.checkpoint;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.annotation.JsonProperty;
import dev.millrace.io.FileOps;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.json.JsonMapper;

/** Kills a process that writes checkpoints, at random moments, and looks at what it left. */
class CheckpointKillTest {
  private static final int MEBIBYTES = 12;

  @TempDir Path folder;

  @Test
  void tenKills() throws Exception {
    assertTrue(kill(folder, 10, 1) > 0);
  }

  /** The long form, for {@code tools/show}: {@code CheckpointKillTest FOLDER KILLS SEED}. */
  public static void main(String[] args) throws Exception {
    int kills = Integer.parseInt(args[1]);
    long last = kill(Path.of(args[0]), kills, Long.parseLong(args[2]));
    System.out.printf(
        "%d kills, last acknowledged checkpoint %d, every newest one loaded%n", kills, last);
  }

  /** Returns the last acknowledged tick. */
  private static long kill(Path folder, int kills, long seed) throws Exception {
    Random random = new Random(seed);
    long acknowledged = 0;
    for (int i = 0; i < kills; i++) {
      acknowledged = killOnce(folder, acknowledged, random);
      CheckpointStore store = new CheckpointStore(folder, FileOps.SYSTEM);
      CheckpointStore.Newest newest = store.newest();
      assertEquals(List.of(), newest.skipped(), "kill " + i);
      if (acknowledged == 0) {
        continue;
      }
      try (Checkpoint checkpoint = newest.checkpoint().orElseThrow()) {
        long tick = checkpoint.info().tick();
        assertTrue(tick >= acknowledged, "kill " + i + ": " + tick + " < " + acknowledged);
        int rows = MEBIBYTES * (1 << 20) / (10 * 4);
        FakeEngine engine = new FakeEngine(0, rows);
        checkpoint.restore(engine);
        assertEquals((byte) tick, engine.state().get("alpha/log")[0]);
        acknowledged = tick;
      }
    }
    return acknowledged;
  }

  /** Of the code at hand, however this process got it. */
  private static String classPath() {
    return Stream.of(
            CheckpointKillMain.class,
            FileOps.class,
            JsonMapper.class,
            JacksonException.class,
            JsonProperty.class)
        .map(each -> each.getProtectionDomain().getCodeSource().getLocation().getPath())
        .distinct()
        .collect(Collectors.joining(File.pathSeparator));
  }

  private static long killOnce(Path folder, long tick, Random random)
      throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElse("java"));
    command.addAll(List.of("-cp", classPath()));
    command.addAll(List.of(CheckpointKillMain.class.getName(), folder.toString()));
    command.addAll(List.of(Long.toString(tick), Integer.toString(MEBIBYTES)));
    Process process =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    long acknowledged = tick;
    try (BufferedReader lines = process.inputReader()) {
      assertEquals("ready", lines.readLine());
      for (int finished = random.nextInt(3); finished > 0; finished--) {
        acknowledged = Long.parseLong(lines.readLine());
      }
      // One checkpoint takes some 100 ms: the kill falls anywhere in one, or between two.
      process.waitFor(random.nextInt(300), TimeUnit.MILLISECONDS);
      process.toHandle().destroyForcibly(); // Process.destroyForcibly would close our end, too
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        acknowledged = Long.parseLong(line);
      }
    }
    process.waitFor();
    return acknowledged;
  }
}

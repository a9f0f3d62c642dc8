package dev.millrace.checkpoint;

import dev.millrace.io.FileOps;
import java.io.IOException;
import java.nio.file.Path;

/**
 * Writes checkpoints until it is killed, and says after each one that it is safe: {@code
 * CheckpointKillMain FOLDER FIRST_TICK MEBIBYTES}.
 */
public final class CheckpointKillMain {
  private CheckpointKillMain() {}

  public static void main(String[] args) throws IOException {
    CheckpointStore store = new CheckpointStore(Path.of(args[0]), FileOps.SYSTEM);
    long tick = Long.parseLong(args[1]);
    int rows = Integer.parseInt(args[2]) * (1 << 20) / (10 * 4);
    FakeEngine engine = new FakeEngine(tick, rows);
    System.out.println("ready");
    while (true) {
      tick++;
      engine.state().get("alpha/log")[0] = (byte) tick;
      store.write(engine, new CheckpointInfo.Progress(tick, tick, tick, 0, ""), true, 3);
      System.out.println(tick);
    }
  }
}

package dev.millrace.checkpoint;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.checkpoint.CheckpointInfo.Progress;
import dev.millrace.core.Engine.Tensor;
import dev.millrace.io.FileOps;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CheckpointStoreTest {
  @TempDir Path folder;

  private CheckpointStore store() {
    return new CheckpointStore(folder, FileOps.SYSTEM);
  }

  private static Progress at(long tick) {
    return new Progress(tick, tick * 4, tick * 2, tick / 10.0, "c0de");
  }

  private void write(FakeEngine engine, long tick, boolean withReplay) throws IOException {
    engine.advance(1);
    store().write(engine, at(tick), withReplay, 3);
  }

  private Checkpoint newest() {
    return store().newest().checkpoint().orElseThrow();
  }

  @Test
  void everythingComesBack() throws IOException {
    FakeEngine engine = new FakeEngine(1);
    write(engine, 10, true);
    FakeEngine other = new FakeEngine(2);
    try (Checkpoint checkpoint = newest()) {
      assertEquals(at(10).tick(), checkpoint.info().tick());
      assertEquals(1.0, checkpoint.info().trainingSeconds());
      assertEquals("c0de", checkpoint.info().configSha256());
      List<Checkpoint.Part> parts = checkpoint.restore(other);
      assertTrue(parts.stream().allMatch(Checkpoint.Part::restored));
    }
    assertEquals(true, other.restoredWithReplay());
    engine.state().forEach((name, bytes) -> assertArrayEquals(bytes, other.state().get(name)));
  }

  @Test
  void withoutReplayThatPartIsAbsentAndUntouched() throws IOException {
    FakeEngine engine = new FakeEngine(1);
    write(engine, 10, false);
    FakeEngine other = new FakeEngine(2);
    byte[] before = other.state().get("replay/rows").clone();
    try (Checkpoint checkpoint = newest()) {
      List<Checkpoint.Part> parts = checkpoint.restore(other);
      List<String> absent =
          parts.stream().filter(part -> !part.restored()).map(Checkpoint.Part::name).toList();
      assertEquals(List.of("replay"), absent);
    }
    assertEquals(false, other.restoredWithReplay());
    assertArrayEquals(before, other.state().get("replay/rows"));
  }

  @Test
  void theNewestAreKept() throws IOException {
    FakeEngine engine = new FakeEngine(1);
    for (long tick = 10; tick <= 60; tick += 10) {
      write(engine, tick, false);
    }
    assertEquals(List.of(60L, 50L, 40L), store().ticks());
    try (var entries = Files.list(folder)) {
      assertEquals(3, entries.count());
    }
  }

  @Test
  void aDamagedOneTakesNoPlaceOfAGoodOne() throws IOException {
    FakeEngine engine = new FakeEngine(1);
    write(engine, 20, false);
    write(engine, 40, false);
    Files.write(folder.resolve("tick-000000000040/state.safetensors"), new byte[] {1});
    new CheckpointStore(folder, FileOps.SYSTEM).write(engine, at(30), false, 1);
    assertEquals(List.of(40L, 30L), store().ticks());
    try (Checkpoint checkpoint = newest()) {
      assertEquals(30, checkpoint.info().tick());
    }
  }

  @Test
  void namesAreTheSameInEveryLanguage() {
    Locale before = Locale.getDefault();
    try {
      Locale.setDefault(Locale.forLanguageTag("ar-EG-u-nu-arab"));
      assertEquals("tick-000000000020", CheckpointStore.name(20));
    } finally {
      Locale.setDefault(before);
    }
  }

  @Test
  void theSameTickAgainChangesNothing() throws IOException {
    FakeEngine engine = new FakeEngine(1);
    write(engine, 10, true);
    write(engine, 10, true);
    assertEquals(List.of(10L), store().ticks());
    Path state = folder.resolve("tick-000000000010/state.safetensors");
    Files.write(state, new byte[] {1});
    write(engine, 10, true);
    newest().close();
  }

  /** The process dies before operation n, for every n: the checkpoint before must load. */
  @Test
  void aKillAtAnyOperationLeavesAGoodOne() throws IOException {
    FakeEngine engine = new FakeEngine(1);
    write(engine, 10, true);
    boolean finished = false;
    int kills = 0;
    for (int n = 0; !finished; n++) {
      CheckpointStore dying = new CheckpointStore(folder, new DyingOps(n));
      try {
        dying.write(engine, at(20), true, 1);
        finished = true;
      } catch (IOException e) {
        kills++;
        assertTrue(e.getMessage().contains("tick-000000000020"), e.getMessage());
      }
      try (Checkpoint checkpoint = newest()) {
        checkpoint.restore(new FakeEngine(9));
        long tick = checkpoint.info().tick();
        assertTrue(tick == 20 || (tick == 10 && !finished), "n " + n);
      }
    }
    assertTrue(kills > 15, "kills " + kills);
    assertEquals(List.of(20L), store().ticks());
  }

  /** Fails at the n-th operation and at every one after it, as a dead process does. */
  private static final class DyingOps implements FileOps {
    private int left;

    DyingOps(int left) {
      this.left = left;
    }

    private void live() throws IOException {
      if (left-- <= 0) {
        throw new IOException("dead");
      }
    }

    @Override
    public void createFolder(Path path) throws IOException {
      live();
      FileOps.super.createFolder(path);
    }

    @Override
    public FileChannel create(Path file) throws IOException {
      live();
      return FileOps.super.create(file);
    }

    @Override
    public void write(FileChannel channel, ByteBuffer buffer) throws IOException {
      if (left == 0) { // dies in the middle of it
        ByteBuffer half = buffer.duplicate();
        half.limit(half.position() + half.remaining() / 2);
        FileOps.super.write(channel, half);
      }
      live();
      FileOps.super.write(channel, buffer);
    }

    @Override
    public void sync(FileChannel channel) throws IOException {
      live();
      FileOps.super.sync(channel);
    }

    @Override
    public void syncFolder(Path path) throws IOException {
      live();
      FileOps.super.syncFolder(path);
    }

    @Override
    public void rename(Path from, Path to) throws IOException {
      live();
      FileOps.super.rename(from, to);
    }

    @Override
    public void delete(Path path) throws IOException {
      live();
      FileOps.super.delete(path);
    }
  }

  @Test
  void damagedOnesAreSkippedWithTheReason() throws IOException {
    FakeEngine engine = new FakeEngine(1);
    write(engine, 10, true);
    write(engine, 20, true);
    write(engine, 30, true);
    Path newest = folder.resolve("tick-000000000030");
    Path state = newest.resolve("state.safetensors");
    byte[] good = Files.readAllBytes(state);

    Files.write(state, java.util.Arrays.copyOf(good, good.length - 1));
    assertSkipped("file has");
    byte[] flipped = good.clone();
    flipped[good.length - 1] ^= 1;
    Files.write(state, flipped);
    assertSkipped("SHA-256 differs");
    Files.copy(
        folder.resolve("tick-000000000020/state.safetensors"),
        state,
        java.nio.file.StandardCopyOption.REPLACE_EXISTING);
    assertSkipped("SHA-256 differs");
    Files.delete(state);
    assertSkipped("no such file");
    Files.write(state, good);
    Path info = newest.resolve("checkpoint.json");
    String text = Files.readString(info);
    Files.writeString(info, text.substring(0, text.length() / 2));
    assertSkipped("not valid JSON");
    Files.writeString(info, text.replace("state.safetensors", "../../etc/passwd"));
    assertSkipped("unknown file");
    Files.delete(info);
    assertSkipped("checkpoint.json: no such file");
    Files.writeString(info, text);
    try (Checkpoint checkpoint = newest()) {
      assertEquals(30, checkpoint.info().tick());
    }
  }

  @Test
  void aNumberOutOfRangeIsDamage() throws IOException {
    FakeEngine engine = new FakeEngine(1);
    write(engine, 20, true);
    write(engine, 30, true);
    Path info = folder.resolve("tick-000000000030/checkpoint.json");
    String text = Files.readString(info);
    for (String key : List.of("schema", "tick", "env_steps", "updates", "bytes")) {
      for (String value : List.of("1e30", "12345678901234567890123", "1.5", "-1", "\"1\"")) {
        Files.writeString(info, with(text, key, value));
        assertSkipped("checkpoint.json: " + key + " is not a whole number from 0: ");
      }
    }
    for (String value : List.of("1e400", "-1", "null", "9".repeat(400))) {
      Files.writeString(info, with(text, "training_seconds", value));
      assertSkipped("checkpoint.json: training_seconds is not a finite number from 0: ");
    }
  }

  private static String with(String json, String key, String value) {
    return json.replaceFirst("(\"" + key + "\" *: *)[0-9.]+", "$1" + value);
  }

  private void assertSkipped(String reason) {
    CheckpointStore.Newest newest = store().newest();
    try (Checkpoint checkpoint = newest.checkpoint().orElseThrow()) {
      assertEquals(20, checkpoint.info().tick());
    }
    assertEquals(1, newest.skipped().size());
    assertEquals("tick-000000000030", newest.skipped().get(0).name());
    assertTrue(newest.skipped().get(0).reason().contains(reason), newest.toString());
  }

  /** F2: a checkpoint without any one tensor, or with one too many, does not load. */
  @Test
  void namesAndFormsMustAllMatch() throws IOException {
    for (Tensor tensor : new FakeEngine(1).tensors()) {
      Path own = folder.resolve(tensor.name().replace('/', '-'));
      CheckpointStore lacking = new CheckpointStore(own, FileOps.SYSTEM);
      lacking.write(new FakeEngine(1).without(tensor.name()), at(1), true, 1);
      try (Checkpoint checkpoint = lacking.newest().checkpoint().orElseThrow()) {
        CheckpointException e =
            assertThrows(CheckpointException.class, () -> checkpoint.restore(new FakeEngine(2)));
        assertTrue(e.getMessage().endsWith("missing " + tensor.name()), e.getMessage());
      }
    }
    write(new FakeEngine(1), 10, true);
    try (Checkpoint checkpoint = newest()) {
      FakeEngine smaller = new FakeEngine(2).without("alpha/log");
      CheckpointException e =
          assertThrows(CheckpointException.class, () -> checkpoint.restore(smaller));
      assertTrue(e.getMessage().endsWith("the run has no alpha/log"), e.getMessage());
      checkpoint.restorePart(new FakeEngine(2).without("alpha/log"));
      e = assertThrows(CheckpointException.class, () -> checkpoint.restore(new FakeEngine(2, 8)));
      assertTrue(e.getMessage().contains("is F32 [6, 3], the run has F32 [8, 3]"));
    }
  }

  @Test
  void theStateAloneNeedsNoReplay() throws IOException {
    FakeEngine engine = new FakeEngine(1);
    write(engine, 10, true);
    Files.delete(folder.resolve("tick-000000000010/replay.safetensors"));
    assertFalse(store().newest().checkpoint().isPresent());
    FakeEngine other = new FakeEngine(2);
    try (Checkpoint checkpoint = store().newestState().checkpoint().orElseThrow()) {
      assertFalse(checkpoint.info().hasReplay());
      checkpoint.restorePart(other);
    }
    assertArrayEquals(engine.state().get("alpha/log"), other.state().get("alpha/log"));
    assertEquals(false, other.restoredWithReplay());
    store().openState(10).close();
  }

  @Test
  void whatWasCheckedIsWhatIsRead() throws IOException {
    FakeEngine engine = new FakeEngine(1);
    write(engine, 10, true);
    FakeEngine other = new FakeEngine(2);
    try (Checkpoint checkpoint = newest()) {
      Path state = folder.resolve("tick-000000000010/state.safetensors");
      Files.delete(state); // swapped between check and use
      Files.write(state, new byte[1000]);
      checkpoint.restore(other);
    }
    assertArrayEquals(engine.state().get("alpha/log"), other.state().get("alpha/log"));
  }

  @Test
  void aFullDiskIsOneClearLine() throws IOException {
    Path full = folder.resolve("full");
    Files.createDirectory(full);
    FileOps toFullDisk =
        new FileOps() {
          @Override
          public FileChannel create(Path file) throws IOException {
            return FileChannel.open(Path.of("/dev/full"), java.nio.file.StandardOpenOption.WRITE);
          }
        };
    CheckpointStore store = new CheckpointStore(full, toFullDisk);
    IOException e =
        assertThrows(IOException.class, () -> store.write(new FakeEngine(1), at(1), false, 1));
    assertTrue(e.getMessage().endsWith("No space left on device"), e.getMessage());
    assertEquals(1, e.getMessage().lines().count());
    assertFalse(store.newest().checkpoint().isPresent());
    try (var entries = Files.list(full)) {
      assertEquals(0, entries.count()); // what was half written would keep the disk full
    }
  }

  @Test
  void noCheckpointIsNoSurprise() {
    assertEquals(List.of(), store().ticks());
    CheckpointException e = assertThrows(CheckpointException.class, () -> store().openState(7));
    assertTrue(e.getMessage().startsWith("no checkpoint of tick 7"));
  }
}

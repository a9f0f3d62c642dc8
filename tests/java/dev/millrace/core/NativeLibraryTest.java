package dev.millrace.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeLibraryTest {
  private static final String CORE = "libmillrace_core.so";

  @TempDir Path temp;

  private final Map<String, byte[]> jar = pack(Map.of(CORE, "core", "libother.so.2", "other"));
  private final List<String> entered = new ArrayList<>();

  @Test
  void theRealLibraryLoadsOnceAndSaysWhatItIs() {
    NativeLibrary.Loaded loaded = NativeLibrary.load();
    assertSame(loaded, NativeLibrary.load());
    assertSame(loaded, NativeLibrary.loaded().orElseThrow());
    assertTrue(loaded.files().stream().anyMatch(file -> file.name().equals(CORE)));
    assertTrue(Files.isRegularFile(loaded.folder().resolve(CORE)));
  }

  @Test
  void extractsOnceAndReusesTheFolder() throws IOException {
    NativeLibrary.Loaded first = load(null, temp);
    assertArrayEquals("core".getBytes(StandardCharsets.UTF_8), read(first, CORE));
    assertEquals(List.of(first.folder().resolve(CORE).toString()), entered);
    assertEquals(first.folder(), load(null, temp).folder());
    try (var left = Files.list(temp)) {
      assertEquals(List.of(first.folder().getFileName().toString(), "lock"), names(left.toList()));
    }
  }

  @Test
  void repairsAShortenedAndAMissingFile() throws IOException {
    Path folder = load(null, temp).folder();
    Files.writeString(folder.resolve(CORE), "c");
    assertEquals("core", Files.readString(load(null, temp).folder().resolve(CORE)));
    Files.delete(folder.resolve("libother.so.2"));
    assertEquals("other", Files.readString(load(null, temp).folder().resolve("libother.so.2")));
  }

  @Test
  void namesTheDamagedFileWhenLoadingFails() throws IOException {
    Path folder = load(null, temp).folder();
    Files.writeString(folder.resolve(CORE), "c0re");
    NativeUnavailableException e =
        assertThrows(
            NativeUnavailableException.class,
            () ->
                NativeLibrary.load(
                    null,
                    NativeLibrary.caches(temp.toString(), null),
                    this::readJar,
                    path -> {
                      throw new UnsatisfiedLinkError("invalid ELF header");
                    }));
    assertTrue(e.getMessage().contains("damaged files [" + CORE + "]"), e.getMessage());
  }

  @Test
  void refusesADamagedJarAndLeavesNothing() throws IOException {
    jar.put("libother.so.2", "0ther".getBytes(StandardCharsets.UTF_8));
    NativeUnavailableException e =
        assertThrows(NativeUnavailableException.class, () -> load(null, temp));
    assertTrue(e.getMessage().contains("libother.so.2 is damaged in the jar"), e.getMessage());
    try (var left = Files.list(temp)) {
      assertEquals(List.of("lock"), names(left.toList()));
    }
  }

  @Test
  void refusesAnIndexThatLeavesTheFolder() {
    jar.put(
        NativePack.INDEX, ("0".repeat(64) + " 4 ../evil.so\n").getBytes(StandardCharsets.UTF_8));
    NativeUnavailableException e =
        assertThrows(NativeUnavailableException.class, () -> load(null, temp));
    assertTrue(e.getMessage().contains("bad line"), e.getMessage());
  }

  @Test
  void aNamedFolderIsTheOnlyAttempt() throws IOException {
    NativeUnavailableException e =
        assertThrows(NativeUnavailableException.class, () -> load("/nowhere", temp));
    assertEquals(1, e.attempts().size());
    assertTrue(e.attempts().get(0).startsWith("/nowhere (named by"), e.getMessage());
    assertTrue(entered.isEmpty());

    Path folder = Files.createDirectory(temp.resolve("own"));
    for (Map.Entry<String, byte[]> file : jar.entrySet()) {
      Files.write(folder.resolve(file.getKey()), file.getValue());
    }
    assertEquals(folder, load(folder.toString(), temp).folder());
    Files.writeString(folder.resolve(CORE), "c");
    e = assertThrows(NativeUnavailableException.class, () -> load(folder.toString(), temp));
    assertTrue(e.getMessage().contains("has 1 bytes, not 4"), e.getMessage());
  }

  @Test
  void listsEveryAttempt() throws IOException {
    Path file = Files.writeString(temp.resolve("file"), "");
    NativeUnavailableException e =
        assertThrows(
            NativeUnavailableException.class,
            () ->
                NativeLibrary.load(
                    null,
                    NativeLibrary.caches(null, file.toString()),
                    this::readJar,
                    path -> {
                      throw new UnsatisfiedLinkError("no such symbol");
                    }));
    assertEquals(2, e.attempts().size());
    assertTrue(e.attempts().get(0).contains(file.toString()), e.getMessage());
    assertTrue(e.attempts().get(1).contains("no such symbol"), e.getMessage());
  }

  @Test
  void aUserWithoutAHomeGetsATemporaryFolder() {
    assertEquals(
        List.of("jar, by a temporary folder"),
        NativeLibrary.caches(null, "?").stream().map(NativeLibrary.Cache::origin).toList());
  }

  @Test
  void threadsAndProcessesExtractTogether() throws Exception {
    Path source = Files.createDirectory(temp.resolve("source"));
    for (Map.Entry<String, byte[]> file : jar.entrySet()) {
      Files.write(source.resolve(file.getKey()), file.getValue());
    }
    Path cache = temp.resolve("cache");
    List<Process> processes = new ArrayList<>();
    for (int i = 0; i < 2; ++i) {
      processes.add(
          new ProcessBuilder(
                  Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                  "-cp",
                  location(NativeLibrary.class) + ":" + location(NativeLibraryTest.class),
                  Extractor.class.getName(),
                  source.toString(),
                  cache.toString())
              .inheritIO()
              .start());
    }
    ExecutorService threads = Executors.newFixedThreadPool(8);
    try {
      Callable<Path> extract = () -> Extractor.extract(source, cache);
      Path first = extract.call();
      for (Future<Path> other : threads.invokeAll(java.util.Collections.nCopies(64, extract))) {
        assertEquals(first, other.get());
      }
    } finally {
      threads.shutdownNow();
    }
    for (Process process : processes) {
      assertEquals(0, process.waitFor());
    }
    try (var left = Files.list(cache)) {
      List<String> names = names(left.toList());
      assertEquals(2, names.size(), names.toString());
      assertFalse(names.stream().anyMatch(name -> name.startsWith("extract")));
    }
  }

  /** Extracts a pack 20 times, as a second process of the test above. */
  static final class Extractor {
    public static void main(String[] args) throws IOException {
      for (int i = 0; i < 20; ++i) {
        extract(Path.of(args[0]), Path.of(args[1]));
      }
    }

    static Path extract(Path source, Path cache) throws IOException {
      NativePack.Source files = name -> Files.readAllBytes(source.resolve(name));
      NativePack pack = NativePack.of(files);
      return pack.extract(files, cache);
    }
  }

  private NativeLibrary.Loaded load(String folder, Path cache) {
    return NativeLibrary.load(
        folder, NativeLibrary.caches(cache.toString(), null), this::readJar, entered::add);
  }

  private byte[] readJar(String name) throws IOException {
    byte[] bytes = jar.get(name);
    if (bytes == null) {
      throw new FileNotFoundException(name);
    }
    return bytes;
  }

  private static byte[] read(NativeLibrary.Loaded loaded, String name) throws IOException {
    return Files.readAllBytes(loaded.folder().resolve(name));
  }

  private static List<String> names(List<Path> paths) {
    return paths.stream().map(path -> path.getFileName().toString()).sorted().toList();
  }

  private static Path location(Class<?> type) throws Exception {
    return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI());
  }

  private static Map<String, byte[]> pack(Map<String, String> texts) {
    Map<String, byte[]> files = new TreeMap<>();
    StringBuilder index = new StringBuilder();
    new TreeMap<>(texts)
        .forEach(
            (name, text) -> {
              byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
              files.put(name, bytes);
              index.append(sha256(bytes)).append(' ').append(bytes.length).append(' ');
              index.append(name).append('\n');
            });
    files.put(NativePack.INDEX, index.toString().getBytes(StandardCharsets.UTF_8));
    return files;
  }

  private static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (java.security.NoSuchAlgorithmException e) {
      throw new AssertionError(e);
    }
  }
}

package dev.millrace.core;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * Finds the native core and loads it once per process. Any thread may call it.
 *
 * <p>With {@code -Dmillrace.natives=DIR} that folder serves and nothing else is tried. Otherwise
 * the libraries in the jar are extracted, by hash, to {@code ~/.cache/millrace} ({@code
 * -Dmillrace.cache=DIR} names another folder), or to a private temporary folder when there is no
 * usable home.
 */
public final class NativeLibrary {
  static final String FOLDER_PROPERTY = "millrace.natives";
  static final String CACHE_PROPERTY = "millrace.cache";
  private static final String LIBRARY = System.mapLibraryName("millrace_core");

  private static Loaded loaded;

  private NativeLibrary() {}

  /** One library file as its index describes it. */
  public record Packed(String name, long bytes, String sha256) {}

  /** What was loaded: the folder, where it came from, and its files. */
  public record Loaded(Path folder, String origin, List<Packed> files) {}

  /** How a library file enters the process: {@link System#load}, or a test's stand-in. */
  interface Loader {
    void load(String path);
  }

  /**
   * Loads the core unless it is loaded, and says what was loaded.
   *
   * @throws NativeUnavailableException naming every attempt
   */
  public static synchronized Loaded load() {
    if (loaded == null) {
      loaded =
          load(
              System.getProperty(FOLDER_PROPERTY),
              caches(System.getProperty(CACHE_PROPERTY), System.getProperty("user.home")),
              NativeLibrary::readFromJar,
              System::load);
    }
    return loaded;
  }

  /** What {@link #load} loaded, if it did. */
  public static synchronized Optional<Loaded> loaded() {
    return Optional.ofNullable(loaded);
  }

  /** The name of this platform, as in {@code linux-x86_64}. */
  public static String platform() {
    String architecture = System.getProperty("os.arch");
    return System.getProperty("os.name").toLowerCase(Locale.ROOT).replace(' ', '_')
        + "-"
        + (architecture.equals("amd64") ? "x86_64" : architecture);
  }

  static Loaded load(String folder, List<Cache> caches, NativePack.Source jar, Loader loader) {
    List<String> attempts = new ArrayList<>();
    if (folder != null) {
      Path path = Path.of(folder).toAbsolutePath();
      try {
        NativePack pack = NativePack.of(name -> Files.readAllBytes(path.resolve(name)));
        return enter(pack, path, "folder named by " + FOLDER_PROPERTY, loader);
      } catch (IOException | UnsatisfiedLinkError e) {
        attempts.add(path + " (named by -D" + FOLDER_PROPERTY + "): " + reason(e));
        throw new NativeUnavailableException(platform(), attempts, e);
      }
    }
    Throwable last = null;
    for (Cache cache : caches) {
      try {
        NativePack pack = NativePack.of(jar);
        return enter(pack, pack.extract(jar, cache.open()), cache.origin(), loader);
      } catch (IOException | UnsatisfiedLinkError e) {
        attempts.add(cache.origin() + ": " + reason(e));
        last = e;
      }
    }
    throw new NativeUnavailableException(platform(), attempts, last);
  }

  private static Loaded enter(NativePack pack, Path folder, String origin, Loader loader)
      throws IOException {
    pack.checkSizes(folder);
    try {
      loader.load(folder.resolve(LIBRARY).toString());
    } catch (UnsatisfiedLinkError e) {
      List<String> damaged = pack.damaged(folder);
      if (damaged.isEmpty()) {
        throw e;
      }
      throw new IOException(folder + " holds damaged files " + damaged + "; delete it", e);
    }
    return new Loaded(folder, origin, pack.files());
  }

  private static String reason(Throwable e) {
    // The file system's own exceptions carry a bare path as their message.
    return e instanceof UnsatisfiedLinkError || e.getClass() == IOException.class
        ? e.getMessage()
        : e.getClass().getSimpleName() + ": " + e.getMessage();
  }

  private static byte[] readFromJar(String name) throws IOException {
    String resource = "natives/" + platform() + "/" + name;
    try (InputStream in = NativeLibrary.class.getClassLoader().getResourceAsStream(resource)) {
      if (in == null) {
        throw new FileNotFoundException(resource + " is not packed in this jar");
      }
      return in.readAllBytes();
    }
  }

  /** The folders to extract to, best first. */
  static List<Cache> caches(String named, String home) {
    if (named != null) {
      Path path = Path.of(named);
      return List.of(new Cache("jar, by " + path + " (named by -D" + CACHE_PROPERTY + ")", path));
    }
    List<Cache> caches = new ArrayList<>();
    if (home != null && home.startsWith("/")) { // "?" for a user without a passwd entry
      Path path = Path.of(home, ".cache", "millrace");
      caches.add(new Cache("jar, by " + path, path));
    }
    caches.add(new Cache("jar, by a temporary folder", null));
    return caches;
  }

  /**
   * A folder to extract to; without a path, a private one that is removed when the process ends.
   */
  record Cache(String origin, Path path) {
    Path open() throws IOException {
      if (path != null) {
        return path;
      }
      Path temporary = Files.createTempDirectory("millrace");
      Runtime.getRuntime().addShutdownHook(new Thread(() -> discard(temporary), "natives-discard"));
      return temporary;
    }

    private static void discard(Path folder) {
      try {
        NativePack.delete(folder);
      } catch (IOException e) {
        System.err.println("could not remove " + folder + ": " + e.getMessage());
      }
    }
  }
}

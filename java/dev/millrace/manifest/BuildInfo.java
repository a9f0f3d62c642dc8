package dev.millrace.manifest;

import dev.millrace.core.Json;
import dev.millrace.core.NativeLibrary;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Properties;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** What this program is made of: versions, and the library files that were loaded. */
public final class BuildInfo {
  private static final String RESOURCE = "millrace.properties";
  private static final Properties PROPERTIES = load();

  private BuildInfo() {}

  public static String version() {
    return PROPERTIES.getProperty("version");
  }

  /** The commit it was built from, with {@code -dirty} after it if files had been changed. */
  public static String commit() {
    return PROPERTIES.getProperty("commit");
  }

  /** A resource, and no attribute of the jar: the packaged image has no jar. */
  private static Properties load() {
    try (InputStream in = BuildInfo.class.getClassLoader().getResourceAsStream(RESOURCE)) {
      if (in == null) {
        throw new IllegalStateException("not packed: " + RESOURCE);
      }
      Properties properties = new Properties();
      properties.load(in);
      return properties;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * What a run was made with, for its manifest.
   *
   * @param description what the native core says about itself
   */
  public static ObjectNode of(JsonNode description) {
    ObjectNode build = Json.object();
    build.put("version", version());
    build.put("commit", commit());
    build.put("java", System.getProperty("java.vm.name") + " " + Runtime.version());
    build.put("system", System.getProperty("os.name") + " " + System.getProperty("os.version"));
    build.put("cpu", Processor.name());
    for (String key : List.of("compiler", "mujoco", "blas", "cores")) {
      build.set(key, description.path(key).deepCopy());
    }
    build.put("core", description.path("version").asString(""));
    NativeLibrary.loaded()
        .ifPresent(
            loaded -> {
              ObjectNode natives = build.putObject("natives");
              natives.put("folder", loaded.folder().toString());
              natives.put("origin", loaded.origin());
              natives.set("files", Json.tree(loaded.files()));
            });
    return build;
  }
}

package dev.millrace.manifest;

import dev.millrace.core.Json;
import dev.millrace.core.NativeLibrary;
import java.util.List;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** What this program is made of: versions, and the library files that were loaded. */
public final class BuildInfo {
  private BuildInfo() {}

  /** The jar's version; a class folder has none. */
  public static String version() {
    String version = BuildInfo.class.getPackage().getImplementationVersion();
    return version == null ? "development" : version;
  }

  /**
   * What a run was made with, for its manifest.
   *
   * @param description what the native core says about itself
   */
  public static ObjectNode of(JsonNode description) {
    ObjectNode build = Json.object();
    build.put("version", version());
    build.put("java", System.getProperty("java.vm.name") + " " + Runtime.version());
    build.put("system", System.getProperty("os.name") + " " + System.getProperty("os.version"));
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

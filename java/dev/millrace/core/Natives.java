package dev.millrace.core;

import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** The native core of this process. Loading it may fail with every reason listed. */
public final class Natives implements Core {
  private Natives() {}

  /** Loads the library on the first call. */
  public static Core load() {
    NativeLibrary.load();
    return new Natives();
  }

  @Override
  public JsonNode describe() {
    return Json.parse(NativeCore.describe());
  }

  @Override
  public JsonNode preflight(ObjectNode config) {
    try (ModelFolder models = ModelFolder.extract()) {
      return Json.parse(NativeCore.preflight(withResources(config, models)));
    }
  }

  @Override
  public Engine open(ObjectNode config) {
    try (ModelFolder models = ModelFolder.extract()) {
      return NativeRun.open(withResources(config, models));
    }
  }

  @Override
  public JsonNode bench(ObjectNode request) {
    try (ModelFolder models = ModelFolder.extract()) {
      ObjectNode complete = request.deepCopy();
      if (complete.get("config") instanceof ObjectNode config) {
        config.put("resources_dir", models.path().toString());
      } else if (!complete.has("model_file")) {
        complete.put("model_file", models.file("g1.xml").toString());
      }
      return Json.parse(NativeCore.bench(Json.write(complete)));
    }
  }

  @Override
  public JsonNode motion(ObjectNode request) {
    try (ModelFolder models = ModelFolder.extract()) {
      return Json.parse(NativeCore.motion(withResources(request, models)));
    }
  }

  private static String withResources(ObjectNode request, ModelFolder models) {
    return Json.write(request.deepCopy().put("resources_dir", models.path().toString()));
  }
}

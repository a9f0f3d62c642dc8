package dev.millrace.core;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The packed robot models as files, for as long as one native call needs them: {@code
 * <path>/models/<name>.xml}.
 */
final class ModelFolder implements AutoCloseable {
  static final List<String> MODELS = List.of("cartpole.xml", "g1.xml");

  private final Path path;

  private ModelFolder(Path path) {
    this.path = path;
  }

  static ModelFolder extract() {
    try {
      ModelFolder folder = new ModelFolder(Files.createTempDirectory("millrace-models"));
      Files.createDirectory(folder.models());
      for (String name : MODELS) {
        copy("models/" + name, folder.models().resolve(name));
      }
      return folder;
    } catch (IOException e) {
      throw new UncheckedIOException("cannot unpack the robot models", e);
    }
  }

  Path path() {
    return path;
  }

  /** One of the models. */
  Path file(String name) {
    return models().resolve(name);
  }

  private Path models() {
    return path.resolve("models");
  }

  private static void copy(String resource, Path target) throws IOException {
    try (InputStream in = ModelFolder.class.getClassLoader().getResourceAsStream(resource)) {
      if (in == null) {
        throw new IOException("not packed in this jar: " + resource);
      }
      Files.copy(in, target);
    }
  }

  @Override
  public void close() {
    try {
      for (String name : MODELS) {
        Files.deleteIfExists(models().resolve(name));
      }
      Files.deleteIfExists(models());
      Files.deleteIfExists(path);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot remove " + path, e);
    }
  }
}

package dev.millrace.manifest;

import com.networknt.schema.Schema;
import com.networknt.schema.SchemaRegistry;
import com.networknt.schema.SpecificationVersion;
import dev.millrace.core.Json;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;

/** Checks a manifest against its JSON Schema, and the files it lists against their hashes. */
public final class ManifestVerifier {
  private static final String SCHEMA = "schema/manifest.schema.json";

  private ManifestVerifier() {}

  /** Reads the manifest of a run directory, or a manifest file itself. */
  public static JsonNode read(Path runOrFile) throws IOException {
    Path file = file(runOrFile);
    JsonNode root = Json.read(file);
    if (!root.isObject()) {
      throw new IOException(file + ": expected a JSON object");
    }
    return root;
  }

  private static Path file(Path runOrFile) {
    return Files.isDirectory(runOrFile) ? runOrFile.resolve(Artifacts.MANIFEST) : runOrFile;
  }

  /** One line for each problem; none is a valid manifest whose files are unchanged. */
  public static List<String> verify(Path runOrFile) throws IOException {
    JsonNode manifest = read(runOrFile);
    Path file = file(runOrFile);
    List<String> problems = new ArrayList<>();
    schemaErrors(manifest).forEach(error -> problems.add(file + ": " + error));
    Path directory = file.toAbsolutePath().getParent();
    problems.addAll(Artifacts.differences(directory, manifest.path("artifacts")));
    return problems;
  }

  /** What is wrong with one file; nothing if the manifest does not list it. */
  public static List<String> verify(Path directory, JsonNode manifest, String name) {
    ArrayNode listed = Json.array();
    for (JsonNode artifact : manifest.path("artifacts")) {
      if (artifact.path("path").asString("").equals(name)) {
        listed.add(artifact);
      }
    }
    return Artifacts.differences(directory, listed);
  }

  static List<String> schemaErrors(JsonNode manifest) {
    return schema().validate(manifest).stream()
        .map(error -> place(error.getInstanceLocation().toString()) + error.getMessage())
        .toList();
  }

  /** The manifest itself has an empty one. */
  private static String place(String location) {
    return location.isEmpty() ? "" : location + ": ";
  }

  private static Schema schema() {
    try (InputStream in = ManifestVerifier.class.getClassLoader().getResourceAsStream(SCHEMA)) {
      if (in == null) {
        throw new IllegalStateException("not packed: " + SCHEMA);
      }
      String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
      return SchemaRegistry.withDefaultDialect(SpecificationVersion.DRAFT_2020_12)
          .getSchema(Json.parse(text));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}

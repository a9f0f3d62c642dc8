package dev.millrace.cli;

import dev.millrace.core.Core;
import dev.millrace.core.Json;
import dev.millrace.core.NativeLibrary;
import dev.millrace.core.NativeUnavailableException;
import dev.millrace.io.FileErrors;
import dev.millrace.manifest.BuildInfo;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import tools.jackson.databind.JsonNode;

/** {@code doctor}: whether this machine can run everything, and if not, why. */
@Command(
    name = "doctor",
    description = "Check this machine: libraries, versions, devices, memory, folders.",
    mixinStandardHelpOptions = true,
    footer = {
      "",
      "Ends with code 5 if the native library cannot be loaded.",
      "",
      "Example",
      "  millrace doctor --json"
    })
final class DoctorCommand implements Callable<Integer> {
  private final Context context;
  private final Table table = new Table("state", "what", "value");

  @Option(names = "--json", description = "Print JSON.")
  private boolean json;

  DoctorCommand(Context context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    row(true, "millrace", BuildInfo.version() + ", commit " + BuildInfo.commit());
    row(true, "java", System.getProperty("java.vm.name") + " " + Runtime.version());
    row(
        Runtime.version().feature() >= 17,
        "system",
        System.getProperty("os.name")
            + " "
            + System.getProperty("os.version")
            + " "
            + System.getProperty("os.arch"));
    folder("current folder", Path.of(""));
    folder("temporary folder", Path.of(System.getProperty("java.io.tmpdir")));
    int code = ExitCodes.OK;
    try {
      natives(context.core());
    } catch (NativeUnavailableException e) {
      row(false, "native library", "unavailable");
      e.attempts().forEach(attempt -> row(false, "tried", attempt));
      code = ExitCodes.NATIVE_UNAVAILABLE;
    }
    if (json) {
      context.out().print(Json.pretty(table.json()));
    } else {
      table.print(context.out());
    }
    return code;
  }

  private void natives(Core core) {
    NativeLibrary.loaded()
        .ifPresent(
            loaded -> {
              row(true, "native library", loaded.folder() + " (" + loaded.origin() + ")");
              for (NativeLibrary.Packed file : loaded.files()) {
                row(true, file.name(), file.bytes() + " bytes, SHA-256 " + file.sha256());
              }
            });
    JsonNode about = core.describe();
    row(true, "core", about.path("version").asString("") + ", " + text(about.path("compiler")));
    JsonNode mujoco = about.path("mujoco");
    boolean same = mujoco.path("compiled").equals(mujoco.path("loaded"));
    row(
        same,
        "MuJoCo",
        "compiled " + text(mujoco.path("compiled")) + ", loaded " + text(mujoco.path("loaded")));
    row(true, "BLAS", text(about.path("blas")));
    for (JsonNode backend : about.path("backends")) {
      boolean available = backend.path("available").asBoolean(false);
      String value =
          available
              ? "available " + backend.path("device").asString("")
              : "not available: " + backend.path("reason").asString("");
      String verified = backend.path("verified").asString("");
      if (!verified.isEmpty()) {
        value = value.strip() + " (verified: " + verified + ")";
      }
      String name = backend.path("name").asString("");
      // A device that is not there is no fault of the machine; the CPU must be.
      table.row(available ? "ok" : name.equals("cpu") ? "bad" : "-", "device " + name, value);
    }
    row(true, "cores", text(about.path("cores")));
    JsonNode memory = about.path("memory");
    long megabytes = memory.path("available_bytes").asLong() >> 20;
    row(
        megabytes >= 1024,
        "memory",
        String.format(
            Locale.ROOT, "%,d MiB available (%s)", megabytes, memory.path("source").asString("")));
  }

  private void folder(String what, Path path) {
    Path absolute = path.toAbsolutePath();
    Optional<String> why = FileErrors.whyNothingNew(absolute);
    row(why.isEmpty(), what, absolute + why.map(each -> " (" + each + ")").orElse(" (writable)"));
  }

  private void row(boolean good, String what, String value) {
    table.row(good ? "ok" : "bad", what, value);
  }

  private static String text(JsonNode node) {
    return node.isString() ? node.asString() : Json.write(node);
  }
}

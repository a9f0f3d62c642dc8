package dev.millrace.cli;

import dev.millrace.checkpoint.CheckpointStore;
import dev.millrace.core.Json;
import dev.millrace.manifest.Manifest;
import dev.millrace.manifest.ManifestVerifier;
import dev.millrace.run.BadInputException;
import dev.millrace.run.RunDirectory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.JsonNode;

/** {@code manifest show|verify|diff}: what a run was. */
@Command(
    name = "manifest",
    description = "Look at the manifest of a run, check it, or compare two.",
    mixinStandardHelpOptions = true,
    footer = {
      "",
      "Examples",
      "  millrace manifest show runs/third training",
      "  millrace manifest verify runs/third",
      "  millrace manifest diff runs/second runs/third"
    })
final class ManifestCommand {
  /** {@code manifest show RUN [SECTION]}. */
  @Command(
      name = "show",
      description = "Print a manifest, or one section or value of it.",
      mixinStandardHelpOptions = true,
      footer = {"", "Example", "  millrace manifest show runs/third replay.host_bytes"})
  static final class Show implements Callable<Integer> {
    private final Context context;

    @Parameters(index = "0", paramLabel = "RUN", description = "A run directory or a manifest.")
    private Path run;

    @Parameters(
        index = "1",
        arity = "0..1",
        paramLabel = "KEY",
        description = "Path of a section or value, such as replay or training.updates.")
    private String key;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    Show(Context context) {
      this.context = context;
    }

    @Override
    public Integer call() throws IOException {
      JsonNode node = ManifestVerifier.read(run);
      for (String part : key == null ? new String[0] : key.split("\\.")) {
        node = node.path(part);
      }
      if (node.isMissingNode()) {
        throw new BadInputException(run + ": the manifest has no " + key);
      }
      if (json || !node.isObject()) {
        context.out().print(node.isString() && !json ? node.asString() + "\n" : Json.pretty(node));
        return ExitCodes.OK;
      }
      Table table = new Table("key", "value");
      node.properties().forEach(each -> flatten(each.getKey(), each.getValue(), table));
      table.print(context.out());
      return ExitCodes.OK;
    }

    private static void flatten(String path, JsonNode node, Table table) {
      if (node.isObject() && !node.isEmpty()) {
        node.properties()
            .forEach(each -> flatten(path + "." + each.getKey(), each.getValue(), table));
      } else if (node.isArray() && !node.isEmpty() && node.get(0).isObject()) {
        for (int i = 0; i < node.size(); i++) {
          table.row(path + "[" + i + "]", Json.write(node.get(i)));
        }
      } else {
        table.row(path, Reports.cell(node));
      }
    }
  }

  /** {@code manifest verify RUN}. */
  @Command(
      name = "verify",
      description =
          "Check a manifest against its schema, every file and checkpoint against its SHA-256.",
      mixinStandardHelpOptions = true,
      footer = {
        "",
        "Ends with code 2 if anything is wrong.",
        "",
        "Example",
        "  millrace manifest verify runs/third --json"
      })
  static final class Verify implements Callable<Integer> {
    private final Context context;

    @Parameters(paramLabel = "RUN", description = "A run directory or a manifest.")
    private Path run;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    Verify(Context context) {
      this.context = context;
    }

    /** A run that went on past a damaged checkpoint lists it as it found it. */
    private void addDamagedCheckpoints(List<String> problems) {
      for (CheckpointStore.Skipped each : new RunDirectory(run).checkpoints().damaged()) {
        if (problems.stream().noneMatch(problem -> problem.contains(each.name()))) {
          problems.add("checkpoints/" + each.name() + ": " + each.reason());
        }
      }
    }

    @Override
    public Integer call() throws IOException {
      JsonNode manifest = ManifestVerifier.read(run);
      List<String> problems = new ArrayList<>(ManifestVerifier.verify(run));
      if (Files.isDirectory(run)) {
        addDamagedCheckpoints(problems);
      }
      if (json) {
        context
            .out()
            .print(
                Json.pretty(
                    Json.object()
                        .put("valid", problems.isEmpty())
                        .set("problems", Json.tree(problems))));
      } else if (problems.isEmpty()) {
        int files = manifest.path("artifacts").size();
        context.out().println(run + ": valid; " + files + " files unchanged");
      } else {
        problems.forEach(context.out()::println);
      }
      return problems.isEmpty() ? ExitCodes.OK : ExitCodes.USAGE;
    }
  }

  /** {@code manifest diff A B}. */
  @Command(
      name = "diff",
      description = "Print every value in which two manifests differ.",
      mixinStandardHelpOptions = true,
      footer = {"", "Example", "  millrace manifest diff runs/second runs/third"})
  static final class Diff implements Callable<Integer> {
    private final Context context;

    @Parameters(index = "0", paramLabel = "A", description = "A run directory or a manifest.")
    private Path first;

    @Parameters(index = "1", paramLabel = "B", description = "Another one.")
    private Path second;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    Diff(Context context) {
      this.context = context;
    }

    @Override
    public Integer call() throws IOException {
      Table table = new Table("key", "first", "second");
      for (Manifest.Difference each :
          Manifest.differences(ManifestVerifier.read(first), ManifestVerifier.read(second))) {
        table.row(each.path(), each.first(), each.second());
      }
      if (json) {
        context.out().print(Json.pretty(table.json()));
      } else {
        table.print(context.out());
      }
      return ExitCodes.OK;
    }
  }
}

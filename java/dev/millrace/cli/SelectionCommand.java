package dev.millrace.cli;

import dev.millrace.core.Json;
import dev.millrace.manifest.ManifestVerifier;
import dev.millrace.run.BadInputException;
import dev.millrace.run.RunDirectory;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/** {@code selection show}: which way of launching each program was measured to be faster. */
@Command(
    name = "selection",
    description = "Look at what was measured between eager launches and graphs.",
    mixinStandardHelpOptions = true,
    footer = {"", "Example", "  millrace selection show runs/third"})
final class SelectionCommand {
  /** {@code selection show [FILE]}. */
  @Command(
      name = "show",
      description = "Every program's ways with their times, what was taken, and why.",
      mixinStandardHelpOptions = true,
      footer = {
        "",
        "taken: the way that runs. A way is taken only if it gains more than 3 %%",
        "and more than twice the spread (MAD) of its times.",
        "",
        "Examples",
        "  millrace selection show                                   all below runs/",
        "  millrace selection show runs/third                        what that run used",
        "  millrace selection show runs/g1_walk_flat-fastsac/selection.json"
      })
  static final class Show implements Callable<Integer> {
    private final Context context;

    @Parameters(
        arity = "0..1",
        paramLabel = "FILE",
        description = "A run directory, a manifest or a selection cache.")
    private Path file;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    Show(Context context) {
      this.context = context;
    }

    @Override
    public Integer call() throws IOException {
      ArrayNode selections = file == null ? below(Path.of("runs"), context.err()) : of(file);
      if (json) {
        context.out().print(Json.pretty(Json.object().set("selections", selections)));
      } else if (selections.isEmpty()) {
        context.out().println("nothing was measured: " + (file == null ? "runs" : file));
      } else {
        print(selections);
      }
      return ExitCodes.OK;
    }

    /** Of all caches below a folder; one that is damaged hides no other, but is named. */
    static ArrayNode below(Path runs, PrintStream err) throws IOException {
      ArrayNode selections = Json.array();
      for (Path cache : caches(runs)) {
        try {
          selections.addAll(of(cache));
        } catch (IOException | BadInputException e) {
          err.println("skipped " + e.getMessage());
        }
      }
      return selections;
    }

    /** Where runs keep theirs if nothing else is configured. */
    private static List<Path> caches(Path runs) throws IOException {
      if (!Files.isDirectory(runs)) {
        return List.of();
      }
      try (Stream<Path> folders = Files.list(runs)) {
        return folders
            .map(folder -> folder.resolve(RunDirectory.SELECTIONS))
            .filter(Files::isRegularFile)
            .sorted()
            .toList();
      }
    }

    /** A cache lists selections with their names; a manifest has them by name. */
    private static ArrayNode of(Path from) throws IOException {
      JsonNode contents = ManifestVerifier.read(from);
      ArrayNode selections = Json.array();
      if (contents.path("selections").isArray()) {
        for (JsonNode entry : contents.path("selections")) {
          String place = from + ": selections[" + selections.size() + "].selection";
          ObjectNode selection = selections.addObject();
          selection.put("file", from.toString()).put("program", entry.path("name").asString("?"));
          selection.setAll(measured(place, entry.path("selection")));
          selection.set("key", entry.path("key"));
        }
      } else if (contents.path("selection").isObject()) {
        for (Map.Entry<String, JsonNode> entry : contents.path("selection").properties()) {
          String place = from + ": selection." + entry.getKey();
          ObjectNode selection = selections.addObject();
          selection.put("file", from.toString()).put("program", entry.getKey());
          selection.setAll(measured(place, entry.getValue()));
        }
      } else {
        throw new BadInputException(from + ": neither a manifest nor a selection cache");
      }
      return selections;
    }

    private static ObjectNode measured(String place, JsonNode value) {
      if (value instanceof ObjectNode measured) {
        return measured;
      }
      throw new BadInputException(place + ": expected what was measured of a program");
    }

    private void print(ArrayNode selections) {
      Table ways =
          new Table("program", "way", "taken", "median us", "p99 us", "MAD us", "rounds", "shapes");
      Table reasons = new Table("program", "taken", "from", "profiled ms", "reason", "device");
      for (JsonNode selection : selections) {
        String program = text(selection, "program");
        String taken = text(selection, "way");
        for (JsonNode way : selection.path("measured")) {
          ways.row(
              program,
              text(way, "way"),
              text(way, "way").equals(taken) ? "yes" : "",
              Reports.cell(way.path("median_us")),
              Reports.cell(way.path("p99_us")),
              Reports.cell(way.path("mad_us")),
              Reports.cell(way.path("rounds")),
              text(selection.path("key"), "shapes"));
        }
        reasons.row(
            program,
            taken,
            selection.path("source").asString("cache"),
            Reports.cell(selection.path("profile_ms")),
            text(selection, "reason"),
            text(selection.path("key"), "device"));
      }
      if (!ways.isEmpty()) {
        ways.print(context.out());
        context.out().println();
      }
      reasons.print(context.out());
    }

    private static String text(JsonNode node, String key) {
      return node.path(key).asString("");
    }
  }
}

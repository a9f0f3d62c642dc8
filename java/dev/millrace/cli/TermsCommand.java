package dev.millrace.cli;

import dev.millrace.config.Nearest;
import dev.millrace.core.Json;
import dev.millrace.run.BadInputException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;

/** {@code terms [NAME]}: what tasks are made of. */
@Command(
    name = "terms",
    description = "List the terms that tasks are made of, or the parameters of one.",
    mixinStandardHelpOptions = true,
    footer = {
      "",
      "Examples",
      "  millrace terms --kind reward",
      "  millrace terms feet_phase",
      "  millrace terms --kind expression       what a reward's expr can name",
      "  millrace terms --json"
    })
final class TermsCommand implements Callable<Integer> {
  private final Context context;

  @Parameters(arity = "0..1", paramLabel = "NAME", description = "A term.")
  private String name;

  @Option(
      names = "--kind",
      paramLabel = "KIND",
      description =
          "reward, observation, termination, command, event, curriculum, or expression: the names"
              + " and functions of a reward's expr.")
  private String kind;

  @Option(names = "--json", description = "Print JSON.")
  private boolean json;

  TermsCommand(Context context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    JsonNode all = context.core().describe().path("terms");
    ArrayNode chosen = Json.object().putArray("terms");
    List<String> names = new ArrayList<>();
    List<String> kinds = new ArrayList<>();
    for (JsonNode term : all) {
      names.add(term.path("name").asString(""));
      String itsKind = term.path("kind").asString("");
      if (!kinds.contains(itsKind)) {
        kinds.add(itsKind);
      }
      boolean named = name == null || name.equals(names.get(names.size() - 1));
      if (named && (kind == null || kind.equals(itsKind))) {
        chosen.add(term);
      }
    }
    if (kind != null && !kinds.contains(kind)) {
      throw new BadInputException("--kind " + kind + Nearest.hint(kind, kinds));
    }
    if (name != null && chosen.isEmpty()) {
      throw new BadInputException("no term \"" + name + "\"" + Nearest.hint(name, names));
    }
    print(chosen);
    return ExitCodes.OK;
  }

  private void print(ArrayNode terms) {
    if (json) {
      context.out().print(Json.pretty(terms));
      return;
    }
    Table table = new Table("kind", "term", "unit", "summary", "params");
    for (JsonNode term : terms) {
      List<String> params = new ArrayList<>();
      term.path("params")
          .forEach(
              param -> params.add(param.path("name").asString("") + "=" + param.path("default")));
      table.row(
          term.path("kind").asString(""),
          term.path("name").asString(""),
          term.path("unit").asString(""),
          term.path("summary").asString(""),
          String.join(" ", params));
    }
    table.print(context.out());
    if (name != null && !terms.get(0).path("params").isEmpty()) {
      context.out().println();
      JsonTables.print(terms.get(0).path("params"), context.out());
    }
  }
}

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

/** {@code tasks [NAME]}: what there is to learn. */
@Command(
    name = "tasks",
    description = "List the tasks, or everything that one of them consists of.",
    mixinStandardHelpOptions = true,
    footer = {"", "Examples", "  millrace tasks", "  millrace tasks g1_walk_flat --json"})
final class TasksCommand implements Callable<Integer> {
  private static final List<String> PARTS =
      List.of(
          "observations", "critic", "rewards", "terminations", "commands", "events", "curriculum");

  private final Context context;

  @Parameters(arity = "0..1", paramLabel = "NAME", description = "A task.")
  private String name;

  @Option(names = "--json", description = "Print JSON.")
  private boolean json;

  TasksCommand(Context context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    JsonNode tasks = context.core().describe().path("tasks");
    if (name != null) {
      JsonNode task = find(tasks);
      if (json) {
        context.out().print(Json.pretty(task));
      } else {
        print(task);
      }
      return ExitCodes.OK;
    }
    if (json) {
      context.out().print(Json.pretty(tasks));
      return ExitCodes.OK;
    }
    Table table =
        new Table("task", "algo", "observation", "critic", "action", "tick s", "ticks", "summary");
    for (JsonNode task : tasks) {
      table.row(
          task.path("name").asString(""),
          task.path("algo").asString(""),
          Reports.cell(task.path("observation_dim")),
          Reports.cell(task.path("critic_dim")),
          Reports.cell(task.path("action_dim")),
          Reports.cell(task.path("tick_seconds")),
          Reports.cell(task.path("max_steps")),
          task.path("summary").asString(""));
    }
    table.print(context.out());
    return ExitCodes.OK;
  }

  private JsonNode find(JsonNode tasks) {
    List<String> names = new ArrayList<>();
    for (JsonNode task : tasks) {
      names.add(task.path("name").asString(""));
      if (names.get(names.size() - 1).equals(name)) {
        return task;
      }
    }
    throw new BadInputException("no task \"" + name + "\"" + Nearest.hint(name, names));
  }

  private void print(JsonNode task) {
    Table facts = new Table("task", task.path("name").asString(""));
    task.properties()
        .forEach(
            each -> {
              if (each.getValue().isValueNode() && !each.getKey().equals("name")) {
                facts.row(each.getKey(), Reports.cell(each.getValue()));
              }
            });
    facts.print(context.out());
    for (String part : PARTS) {
      JsonNode terms = task.path(part);
      if (!terms.isEmpty()) {
        context.out().println();
        context.out().println(part);
        JsonTables.print(terms, context.out());
      }
    }
  }
}

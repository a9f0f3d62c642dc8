package dev.millrace.cli;

import dev.millrace.config.ConfigLoader;
import dev.millrace.config.ConfigLoader.Resolved;
import dev.millrace.config.YamlWriter;
import dev.millrace.core.Json;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import tools.jackson.databind.node.ObjectNode;

/** {@code config show CONFIG}: what a run would use. */
@Command(
    name = "config",
    description = "Look at configurations.",
    mixinStandardHelpOptions = true,
    footer = {"", "Example", "  millrace config show g1_walk_flat"})
final class ConfigCommand {
  /** {@code config show CONFIG}. */
  @Command(
      name = "show",
      description = "Print the resolved configuration: every key with the value a run would use.",
      mixinStandardHelpOptions = true,
      footer = {
        "",
        "Examples",
        "  millrace config show g1_walk_flat > mine.yaml",
        "  millrace config show g1_walk_flat --profile full -s learner.batch=4096"
      })
  static final class Show implements Callable<Integer> {
    private final Context context;

    @Mixin private ConfigOptions options;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    Show(Context context) {
      this.context = context;
    }

    @Override
    public Integer call() {
      Resolved resolved = context.load(options.config(), options.overrides());
      if (json) {
        ObjectNode result = Json.tree(ConfigLoader.tree(resolved.config()));
        context.out().print(Json.pretty(result));
        return ExitCodes.OK;
      }
      context
          .out()
          .printf(
              Locale.ROOT,
              "# profile %s -> %s (%s)%n",
              resolved.requested(),
              resolved.config().profile(),
              resolved.profileReason());
      context.out().print(YamlWriter.write(resolved.config()));
      return ExitCodes.OK;
    }
  }
}

package dev.millrace.cli;

import dev.millrace.config.ConfigLoader;
import dev.millrace.config.ConfigLoader.Resolved;
import dev.millrace.core.Json;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** {@code bench physics|train}: how fast this machine is, every run reported. */
@Command(
    name = "bench",
    description = "Measure physics or training on this machine.",
    mixinStandardHelpOptions = true,
    footer = {
      "",
      "Examples",
      "  millrace bench physics",
      "  millrace bench train g1_walk_flat -s env.num_envs=256"
    })
final class BenchCommand {
  private static int print(Context context, boolean json, JsonNode report) {
    if (json) {
      context.out().print(Json.pretty(report));
    } else {
      JsonTables.print(report, context.out());
    }
    return ExitCodes.OK;
  }

  /** {@code bench physics}. */
  @Command(
      name = "physics",
      description = "Our pool against a bare threaded loop of the same steps, interleaved.",
      mixinStandardHelpOptions = true,
      footer = {"", "Example", "  millrace bench physics --envs 256 --rounds 9 --json"})
  static final class Physics implements Callable<Integer> {
    private final Context context;

    @Option(
        names = "--model",
        paramLabel = "FILE",
        description = "A humanoid's MJCF with the G1's names (default: our own G1).")
    private Path model;

    @Option(
        names = "--envs",
        paramLabel = "N",
        defaultValue = "256",
        description = "Environments (default: ${DEFAULT-VALUE}).")
    private int envs;

    @Option(
        names = "--ticks",
        paramLabel = "N",
        defaultValue = "20",
        description = "Ticks of a round (default: ${DEFAULT-VALUE}).")
    private int ticks;

    @Option(
        names = "--rounds",
        paramLabel = "N",
        defaultValue = "7",
        description = "Rounds of each side (default: ${DEFAULT-VALUE}).")
    private int rounds;

    @Option(
        names = "--threads",
        paramLabel = "N",
        description = "Threads of each side (default: one for each core).")
    private Integer threads;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    Physics(Context context) {
      this.context = context;
    }

    @Override
    public Integer call() {
      ObjectNode request = Json.object().put("kind", "physics");
      request.put("envs", envs).put("ticks", ticks).put("rounds", rounds);
      if (threads != null) {
        request.put("threads", threads);
      }
      if (model != null) {
        request.put("model_file", model.toAbsolutePath().toString());
      }
      return print(context, json, context.core().bench(request));
    }
  }

  /** {@code bench train CONFIG}. */
  @Command(
      name = "train",
      description = "Where the time of a training tick goes.",
      mixinStandardHelpOptions = true,
      footer = {"", "Example", "  millrace bench train g1_walk_flat -s env.num_envs=256 --json"})
  static final class Train implements Callable<Integer> {
    private final Context context;

    @Mixin private ConfigOptions options;

    @Option(
        names = "--ticks",
        paramLabel = "N",
        defaultValue = "50",
        description = "Ticks of a round (default: ${DEFAULT-VALUE}).")
    private int ticks;

    @Option(
        names = "--rounds",
        paramLabel = "N",
        defaultValue = "7",
        description = "Rounds (default: ${DEFAULT-VALUE}).")
    private int rounds;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    Train(Context context) {
      this.context = context;
    }

    @Override
    public Integer call() {
      Resolved resolved = context.load(options.config(), options.overrides());
      ObjectNode config = Json.tree(ConfigLoader.tree(resolved.config()));
      ObjectNode request = Json.object().put("kind", "train");
      request.put("ticks", ticks).put("rounds", rounds);
      request.set("config", config.put("mode", "train"));
      return print(context, json, context.core().bench(request));
    }
  }
}

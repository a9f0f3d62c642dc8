package dev.millrace.cli;

import dev.millrace.checkpoint.Checkpoint;
import dev.millrace.checkpoint.CheckpointStore;
import dev.millrace.config.ConfigLoader;
import dev.millrace.config.ConfigLoader.Resolved;
import dev.millrace.config.RunConfig;
import dev.millrace.core.Json;
import dev.millrace.run.BadInputException;
import dev.millrace.run.Play;
import dev.millrace.run.RunDirectory;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.node.ObjectNode;

/** {@code play RUN}: how good the trained policy is without exploration. */
@Command(
    name = "play",
    description = {
      "Play episodes with the deterministic policy of a run, on the CPU",
      "whatever device the run's configuration names."
    },
    mixinStandardHelpOptions = true,
    footer = {
      "",
      "Examples",
      "  millrace play runs/third",
      "  millrace play runs/third --episodes 100 --clean --json",
      "  millrace play runs/third --checkpoint 2000"
    })
final class PlayCommand implements Callable<Integer> {
  private static final int MOST_EPISODES = 65_536; // of the core, an environment each
  private final Context context;

  @Parameters(paramLabel = "RUN", description = "A run directory.")
  private Path run;

  @Option(
      names = "--episodes",
      paramLabel = "N",
      defaultValue = "20",
      description =
          "How many, 1 to 65536 (default: ${DEFAULT-VALUE}); each has an environment of its own.")
  private int episodes;

  @Option(names = "--clean", description = "Without observation noise and events.")
  private boolean clean;

  @Option(
      names = "--checkpoint",
      paramLabel = "TICK",
      description = "Which checkpoint (default: the newest complete one).")
  private Long checkpointTick;

  @Option(names = "--seed", paramLabel = "N", description = "Default: the run's own seed.")
  private Long seed;

  @Option(names = "--json", description = "Print JSON.")
  private boolean json;

  PlayCommand(Context context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    if (episodes < 1 || episodes > MOST_EPISODES) {
      throw new BadInputException("--episodes " + episodes + ": expected 1 to " + MOST_EPISODES);
    }
    RunDirectory directory = RunDirectory.existing(run);
    Resolved resolved = ConfigLoader.resolveAgain(directory.config(), List.of());
    RunConfig config = resolved.config();
    long playSeed = seed == null ? config.seed() : seed;
    if (playSeed < 0) {
      throw new BadInputException("--seed " + seed + ": expected at least 0");
    }
    try (Checkpoint checkpoint = checkpoint(directory)) {
      if (directory.hasChangedConfig(checkpoint.info())) {
        context
            .err()
            .println(
                "warning: "
                    + directory.config()
                    + ": was changed since the run began, and is played as it is now");
      }
      Play.Report report =
          Context.placed(
              resolved,
              () -> Play.run(context.core(), config, checkpoint, episodes, clean, playSeed));
      print(report);
    }
    return ExitCodes.OK;
  }

  private Checkpoint checkpoint(RunDirectory directory) {
    CheckpointStore store = directory.checkpoints();
    if (checkpointTick != null) {
      return store.openState(checkpointTick);
    }
    CheckpointStore.Newest newest = store.newestState();
    newest
        .skipped()
        .forEach(each -> context.err().println("skipped " + each.name() + ": " + each.reason()));
    return newest
        .checkpoint()
        .orElseThrow(() -> new BadInputException(run + ": no complete checkpoint"));
  }

  private void print(Play.Report report) {
    Table table = new Table("episode", "return", "length", "reason");
    for (int i = 0; i < report.episodes().size(); i++) {
      Play.Episode episode = report.episodes().get(i);
      table.row(i + 1, episode.reward(), episode.length(), episode.reason());
    }
    if (json) {
      ObjectNode result = Json.object();
      result.put("run", run.toString()).put("checkpoint_tick", report.tick());
      result.put("device", report.device()).put("clean", clean);
      Reports.number(result, "return_mean", report.returnMean());
      Reports.number(result, "episode_length_mean", report.lengthMean());
      result.set("episodes", table.json());
      context.out().print(Json.pretty(result));
      return;
    }
    table.print(context.out());
    context
        .out()
        .printf(
            Locale.ROOT,
            "checkpoint of tick %d: mean return %.2f, mean episode length %.1f, %d episodes on %s%n",
            report.tick(),
            report.returnMean(),
            report.lengthMean(),
            report.episodes().size(),
            report.device());
  }
}

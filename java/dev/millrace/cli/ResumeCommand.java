package dev.millrace.cli;

import dev.millrace.checkpoint.Checkpoint;
import dev.millrace.checkpoint.CheckpointStore;
import dev.millrace.config.ConfigLoader;
import dev.millrace.config.ConfigLoader.Resolved;
import dev.millrace.config.RunConfig;
import dev.millrace.preflight.PreflightReport;
import dev.millrace.preflight.RefusedException;
import dev.millrace.progress.Progress;
import dev.millrace.run.BadInputException;
import dev.millrace.run.Outcome;
import dev.millrace.run.Run;
import dev.millrace.run.RunDirectory;
import dev.millrace.run.RunLock;
import dev.millrace.run.StopSignal;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code resume RUN}: continues a run in place from its newest complete checkpoint. */
@Command(
    name = "resume",
    description = "Continue a run in place, from its newest complete checkpoint.",
    mixinStandardHelpOptions = true,
    footer = {
      "",
      "Ends at run.max_ticks or run.max_seconds, whichever comes first; 0 is no limit.",
      "Without the replay in the checkpoint (replay.save) the restored policy first collects rows",
      "again; updates go on when there are enough.",
      "A config.yaml that was changed since the run began is refused: -s changes what may change.",
      "",
      "Examples",
      "  millrace resume runs/third",
      "  millrace resume runs/third --ticks 2000",
      "  millrace resume runs/third -s run.max_ticks=10000"
    })
final class ResumeCommand implements Callable<Integer> {
  private final Context context;

  @Parameters(paramLabel = "RUN", description = "A run directory.")
  private Path run;

  @Option(
      names = "--ticks",
      paramLabel = "N",
      description =
          "So many ticks more, whatever the run's own limits say; not beside -s run.max_ticks.")
  private Long ticks;

  @Option(
      names = {"-s", "--set"},
      paramLabel = "KEY=VALUE",
      description = "Override a key of run, log or checkpoint. Repeatable; the last one counts.")
  private List<String> overrides = new ArrayList<>();

  @Option(names = "--json", description = "Print the result as JSON; all else goes to stderr.")
  private boolean json;

  ResumeCommand(Context context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    RunDirectory directory = RunDirectory.existing(run);
    PrintStream text = json ? context.err() : context.out();
    ConfigLoader.reload(directory.config(), overrides);
    RunLock held = directory.lock();
    try {
      CheckpointStore.Newest newest = directory.checkpoints().newest();
      newest
          .skipped()
          .forEach(each -> text.println("skipped " + each.name() + ": " + each.reason()));
      try (Checkpoint checkpoint =
          newest
              .checkpoint()
              .orElseThrow(() -> new BadInputException(run + ": no complete checkpoint"))) {
        refuseChangedConfig(directory, checkpoint);
        return resume(directory, checkpoint, text);
      }
    } finally {
      held.close();
    }
  }

  /** What trains on would be another run than its manifest and its metrics say. */
  private static void refuseChangedConfig(RunDirectory directory, Checkpoint checkpoint) {
    if (directory.hasChangedConfig(checkpoint.info())) {
      throw new BadInputException(
          directory.config()
              + ": was changed since the run began: put it back; change run, log and checkpoint"
              + " with -s KEY=VALUE, everything else with a new run: millrace train "
              + directory.config());
    }
  }

  private int resume(RunDirectory directory, Checkpoint checkpoint, PrintStream text) {
    Resolved resolved = context.checkTerms(resolve(directory, checkpoint));
    PreflightReport report = context.preflight(resolved);
    Reports.start(text, resolved, report);
    if (!report.refused().isEmpty()) {
      throw new RefusedException(report);
    }
    text.println("continuing " + directory.path() + " at tick " + checkpoint.info().tick());
    try (StopSignal signal = StopSignal.install()) {
      signal.exitCode(ExitCodes.RUN_FAILED);
      Run continued = new Run(context.core(), resolved, directory, Progress.on(text), signal);
      Outcome outcome =
          continued.resume(report, checkpoint, parts -> restored(text, checkpoint, parts));
      String onward = onward(overrides, ticks, checkpoint.info().tick(), outcome.tick());
      Reports.end(context, json, directory, outcome, onward);
      signal.exitCode(ExitCodes.OK);
    }
    return ExitCodes.OK;
  }

  private Resolved resolve(RunDirectory directory, Checkpoint checkpoint) {
    List<String> all = new ArrayList<>();
    long tick = checkpoint.info().tick();
    if (ticks != null) {
      if (ticks < 1) {
        throw new BadInputException("--ticks " + ticks + ": expected at least 1");
      }
      if (ticks > Long.MAX_VALUE - tick) {
        throw new BadInputException(
            "--ticks " + ticks + ": expected at most " + (Long.MAX_VALUE - tick));
      }
      String limit = "run.max_ticks=" + (tick + ticks);
      ConfigOptions.refuseOther("--ticks " + ticks, limit, overrides);
      all.addAll(List.of(limit, "run.max_seconds=0"));
    }
    all.addAll(overrides);
    Resolved resolved = ConfigLoader.resolveAgain(directory.config(), all);
    RunConfig.Run limits = resolved.config().run();
    boolean ticksDone = limits.maxTicks() > 0 && tick >= limits.maxTicks();
    double seconds = checkpoint.info().trainingSeconds();
    boolean secondsDone = limits.maxSeconds() > 0 && seconds >= limits.maxSeconds();
    if (ticksDone || secondsDone) {
      throw new BadInputException(
          run
              + ": nothing left to do: at tick "
              + tick
              + " it is past its "
              + (ticksDone
                  ? "run.max_ticks of " + limits.maxTicks()
                  : "run.max_seconds of " + limits.maxSeconds())
              + "; go on with --ticks N");
    }
    return resolved;
  }

  /**
   * The options with which a resume that was stopped at {@code reached} goes on: its limits are not
   * the run's own. {@code ticks} may be null.
   */
  static String onward(List<String> overrides, Long ticks, long from, long reached) {
    StringBuilder options = new StringBuilder();
    overrides.forEach(each -> options.append(" -s ").append(each));
    if (ticks != null) {
      options.append(" --ticks ").append(from + ticks - reached);
    }
    return options.toString();
  }

  private static void restored(
      PrintStream text, Checkpoint checkpoint, List<Checkpoint.Part> parts) {
    Reports.parts(parts).print(text);
    if (!checkpoint.info().hasReplay()) {
      text.println(
          "the checkpoint holds no replay: the restored policy collects rows again, and updates"
              + " go on when there are enough");
    }
  }
}

package dev.millrace.cli;

import dev.millrace.config.ConfigLoader.Resolved;
import dev.millrace.preflight.PreflightReport;
import dev.millrace.preflight.RefusedException;
import dev.millrace.progress.Progress;
import dev.millrace.run.Outcome;
import dev.millrace.run.Run;
import dev.millrace.run.RunDirectory;
import dev.millrace.run.StopSignal;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code train CONFIG}: from a configuration to a trained policy and a manifest. */
@Command(
    name = "train",
    description = "Train a policy.",
    mixinStandardHelpOptions = true,
    footer = {
      "",
      "Ends at run.max_ticks or run.max_seconds, whichever comes first; 0 is no limit.",
      "Ctrl-C stops at the next tick, writes checkpoint and manifest, and ends with code 0.",
      "",
      "Examples",
      "  millrace train cartpole_swingup",
      "  millrace train g1_walk_flat --seed 3 --out runs/third",
      "  millrace train g1_walk_flat -s env.num_envs=256 -s run.max_seconds=600"
    })
final class TrainCommand implements Callable<Integer> {
  private final Context context;

  @Mixin private ConfigOptions options;

  @Option(
      names = "--out",
      paramLabel = "DIR",
      description = "Run directory, not there yet. Default: runs/<task>-<algo>/<timestamp>.")
  private Path out;

  @Option(names = "--json", description = "Print the result as JSON; all else goes to stderr.")
  private boolean json;

  TrainCommand(Context context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    if (out != null) {
      new RunDirectory(out).refuseUnusable();
    }
    Resolved resolved = context.load(options.config(), options.overrides());
    RunDirectory directory =
        out == null
            ? RunDirectory.standard(resolved.config().task(), resolved.config().algo())
            : new RunDirectory(out);
    PreflightReport report = context.preflight(resolved);
    PrintStream text = json ? context.err() : context.out();
    Reports.start(text, resolved, report);
    if (!report.refused().isEmpty()) {
      throw new RefusedException(report);
    }
    text.println("run directory " + directory.path());
    try (StopSignal signal = StopSignal.install()) {
      signal.exitCode(ExitCodes.RUN_FAILED);
      Run run = new Run(context.core(), resolved, directory, Progress.on(text), signal);
      Outcome outcome = run.train(report);
      Reports.end(context, json, directory, outcome, "");
      signal.exitCode(ExitCodes.OK);
    }
    return ExitCodes.OK;
  }
}

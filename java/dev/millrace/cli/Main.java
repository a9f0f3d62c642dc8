package dev.millrace.cli;

import dev.millrace.config.Nearest;
import dev.millrace.core.Core;
import dev.millrace.core.Natives;
import dev.millrace.manifest.BuildInfo;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.function.Supplier;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.UnmatchedArgumentException;

/** The command line: one sub-command for each thing to do, one exit code for each way to fail. */
@Command(
    name = "millrace",
    description =
        "Trains robot controllers off-policy: MuJoCo physics, one replay ring, SAC learners.",
    mixinStandardHelpOptions = true,
    versionProvider = Main.Version.class,
    synopsisSubcommandLabel = "COMMAND",
    exitCodeListHeading = "%nExit codes%n",
    exitCodeList = {
      "0:ok",
      "1:internal error",
      "2:usage or configuration",
      "3:refused by preflight, or a device that was named is not here",
      "4:the run failed",
      "5:native library unavailable"
    },
    footer = {
      "",
      "Examples",
      "  millrace train cartpole_swingup          learns in minutes on two cores",
      "  millrace play runs/cartpole_swingup-fastsac/20260101-120000",
      "  millrace preflight g1_walk_flat -s env.num_envs=4096",
      "  millrace doctor"
    })
public final class Main {
  @Option(
      names = "--verbose",
      scope = ScopeType.INHERIT,
      description = "Print the stack trace of an error.")
  private boolean verbose;

  private Main() {}

  static final class Version implements CommandLine.IVersionProvider {
    @Override
    public String[] getVersion() {
      return new String[] {"millrace " + BuildInfo.version() + " (" + BuildInfo.commit() + ")"};
    }
  }

  public static void main(String[] args) {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.exit(run(args, new Once(), out, System.err));
  }

  /** Loads the native core when it is first needed. */
  private static final class Once implements Supplier<Core> {
    private Core core;

    @Override
    public synchronized Core get() {
      if (core == null) {
        core = Natives.load();
      }
      return core;
    }
  }

  /** Runs one command and returns the exit code. */
  static int run(String[] args, Supplier<Core> cores, PrintStream out, PrintStream err) {
    Main main = new Main();
    return commandLine(main, new Context(cores, out, err)).execute(args);
  }

  private static CommandLine commandLine(Main main, Context context) {
    CommandLine line =
        new CommandLine(main)
            .addSubcommand(new TrainCommand(context))
            .addSubcommand(new ResumeCommand(context))
            .addSubcommand(new PlayCommand(context))
            .addSubcommand(new PreflightCommand(context))
            .addSubcommand(
                new CommandLine(new GraphCommand()).addSubcommand(new GraphCommand.Show(context)))
            .addSubcommand(
                new CommandLine(new SelectionCommand())
                    .addSubcommand(new SelectionCommand.Show(context)))
            .addSubcommand(
                new CommandLine(new BenchCommand())
                    .addSubcommand(new BenchCommand.Physics(context))
                    .addSubcommand(new BenchCommand.Replay(context))
                    .addSubcommand(new BenchCommand.Update(context))
                    .addSubcommand(new BenchCommand.Learner(context))
                    .addSubcommand(new BenchCommand.Train(context))
                    .addSubcommand(new BenchCommand.Graphs(context)))
            .addSubcommand(new CompareCommand(context))
            .addSubcommand(
                new CommandLine(new TraceCommand())
                    .addSubcommand(new TraceCommand.Summary(context)))
            .addSubcommand(
                new CommandLine(new ManifestCommand())
                    .addSubcommand(new ManifestCommand.Show(context))
                    .addSubcommand(new ManifestCommand.Verify(context))
                    .addSubcommand(new ManifestCommand.Diff(context)))
            .addSubcommand(
                new CommandLine(new MotionCommand())
                    .addSubcommand(new MotionCommand.Info(context))
                    .addSubcommand(new MotionCommand.Convert(context))
                    .addSubcommand(new MotionCommand.Make(context)))
            .addSubcommand(new TasksCommand(context))
            .addSubcommand(new TermsCommand(context))
            .addSubcommand(
                new CommandLine(new ConfigCommand()).addSubcommand(new ConfigCommand.Show(context)))
            .addSubcommand(new DoctorCommand(context));
    line.setOut(new PrintWriter(context.out(), true, StandardCharsets.UTF_8));
    line.setErr(new PrintWriter(context.err(), true, StandardCharsets.UTF_8));
    line.setUsageHelpAutoWidth(true);
    OptionValues.register(line);
    line.setExitCodeExceptionMapper(ExitCodes::of);
    line.setParameterExceptionHandler((failure, args) -> usageError(failure, context));
    line.setExecutionExceptionHandler(
        (failure, command, result) -> {
          context.err().println("millrace: " + message(failure));
          if (main.verbose) {
            failure.printStackTrace(context.err());
          }
          return ExitCodes.of(failure);
        });
    return line;
  }

  private static int usageError(ParameterException failure, Context context) {
    CommandLine command = failure.getCommandLine();
    String name = command.getCommandSpec().qualifiedName();
    String hint = "see: " + name + " --help";
    if (failure instanceof UnmatchedArgumentException unmatched) {
      hint =
          nearest(command, unmatched.getUnmatched().get(0))
              .map(near -> "did you mean " + near + "?")
              .orElse(hint);
    }
    context.err().println(name + ": " + message(failure) + " (" + hint + ")");
    return ExitCodes.USAGE;
  }

  /** The command or long option that was probably meant. */
  private static Optional<String> nearest(CommandLine command, String argument) {
    return argument.startsWith("-")
        ? Nearest.of(
            argument.split("=", 2)[0],
            command.getCommandSpec().optionsMap().keySet().stream()
                .filter(name -> name.startsWith("--"))
                .toList())
        : Nearest.of(argument, command.getSubcommands().keySet());
  }

  private static String message(Throwable failure) {
    String text = failure.getMessage();
    if (text == null || ExitCodes.of(failure) == ExitCodes.INTERNAL_ERROR) {
      text = "internal error: " + failure + " (--verbose shows where)";
    }
    return text;
  }
}

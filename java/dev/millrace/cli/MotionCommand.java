package dev.millrace.cli;

import dev.millrace.core.Json;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** {@code motion info|convert|make}: reference motions for motion tracking. */
@Command(
    name = "motion",
    description = "Look at, convert or make a reference motion.",
    mixinStandardHelpOptions = true,
    footer = {
      "",
      "Examples",
      "  millrace motion info",
      "  millrace motion convert dance.csv dance.npz",
      "  millrace train g1_motion_tracking_sac -s env.motion_file=dance.npz"
    })
final class MotionCommand {
  /** What the three have in common. */
  static final class Options {
    @Option(
        names = "--model",
        paramLabel = "FILE",
        description = "A humanoid's MJCF with the G1's names (default: our own G1).")
    private Path model;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    private int report(Context context, String kind, Path file, Path out) {
      AnswerFile.refuseUnusable(out);
      ObjectNode request = Json.object().put("kind", kind);
      request.put("file", text(file)).put("out", text(out)).put("model_file", text(model));
      JsonNode report = context.core().motion(request);
      if (json) {
        context.out().print(Json.pretty(report));
      } else {
        JsonTables.print(report, context.out());
      }
      return ExitCodes.OK;
    }

    private static String text(Path path) {
      return path == null ? null : path.toAbsolutePath().toString();
    }
  }

  /** {@code motion info [FILE]}. */
  @Command(
      name = "info",
      description = "How long a motion is, and whether the robot can follow it.",
      mixinStandardHelpOptions = true,
      footer = {"", "Example", "  millrace motion info dance.csv --json"})
  static final class Info implements Callable<Integer> {
    private final Context context;

    @Parameters(
        arity = "0..1",
        paramLabel = "FILE",
        description = "A .npz or .csv, or a folder of them (default: the built-in motion).")
    private Path file;

    @Mixin private final Options options = new Options();

    Info(Context context) {
      this.context = context;
    }

    @Override
    public Integer call() {
      return options.report(context, "info", file, null);
    }
  }

  /** {@code motion convert FILE OUT}. */
  @Command(
      name = "convert",
      description = "Bring a recording to 50 frames a second, with all tracked bodies.",
      mixinStandardHelpOptions = true,
      footer = {"", "Example", "  millrace motion convert dance.csv dance.npz"})
  static final class Convert implements Callable<Integer> {
    private final Context context;

    @Parameters(index = "0", paramLabel = "FILE", description = "A .npz or a 36-column .csv.")
    private Path file;

    @Parameters(index = "1", paramLabel = "OUT", description = "The .npz to write.")
    private Path out;

    @Mixin private final Options options = new Options();

    Convert(Context context) {
      this.context = context;
    }

    @Override
    public Integer call() {
      return options.report(context, "convert", file, out);
    }
  }

  /** {@code motion make OUT}. */
  @Command(
      name = "make",
      description = "Write the built-in motion: weight shifts, arm swing, two squats in 10 s.",
      mixinStandardHelpOptions = true,
      footer = {"", "Example", "  millrace motion make built-in.npz"})
  static final class Make implements Callable<Integer> {
    private final Context context;

    @Parameters(index = "0", paramLabel = "OUT", description = "The .npz to write.")
    private Path out;

    @Mixin private final Options options = new Options();

    Make(Context context) {
      this.context = context;
    }

    @Override
    public Integer call() {
      return options.report(context, "make", null, out);
    }
  }
}

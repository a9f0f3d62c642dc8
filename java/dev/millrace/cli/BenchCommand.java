package dev.millrace.cli;

import dev.millrace.config.ConfigException;
import dev.millrace.config.ConfigLoader;
import dev.millrace.config.ConfigLoader.Resolved;
import dev.millrace.core.Json;
import dev.millrace.core.NativeException;
import dev.millrace.io.AtomicFile;
import dev.millrace.io.FileOps;
import dev.millrace.manifest.BuildInfo;
import dev.millrace.preflight.PreflightReport;
import dev.millrace.preflight.RefusedException;
import dev.millrace.run.BadInputException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * {@code bench physics|replay|update|learner|train|graphs}: how fast this machine is, every run
 * reported.
 */
@Command(
    name = "bench",
    description =
        "Measure physics, replay, update step, learner, training or graphs on this machine.",
    mixinStandardHelpOptions = true,
    footer = {
      "",
      "Examples",
      "  millrace bench physics",
      "  millrace bench replay --device cuda --out after.json",
      "  millrace bench train g1_walk_flat -s env.num_envs=256"
    })
final class BenchCommand {
  /** A way of running the update step. */
  enum Mode {
    HOST,
    EAGER,
    GRAPH;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** Asks the core and hands on what it answered; a subclass is what it is asked. */
  private abstract static class Bench implements Callable<Integer> {
    static final long MOST_ROBOTS = 1 << 20; // as env.num_envs
    static final long MOST_ROWS = (1L << 32) - 1;
    static final long MOST_FLOATS = 1 << 16; // of a part of a row
    static final long MOST_SLOTS = 16;
    static final long MOST_THREADS = 1024; // as env.threads
    static final long MOST_MIB = 1 << 20;
    static final List<String> DEVICES = List.of("cpu", "cuda", "metal");

    private final Context context;
    private final String kind;

    @Spec private CommandSpec command;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Option(
        names = "--out",
        paramLabel = "FILE",
        description = "Also write the JSON to this new file, for: millrace compare.")
    private Path out;

    Bench(Context context, String kind) {
      this.context = context;
      this.kind = kind;
    }

    /** Adds to the request what the options say. */
    abstract void request(ObjectNode request, Context context);

    /** The configuration of a bench that takes one, as a training run gets it. */
    static ObjectNode config(ConfigOptions options, Context context) {
      return config(context.load(options.config(), options.overrides()));
    }

    private static ObjectNode config(Resolved resolved) {
      return Json.tree(ConfigLoader.tree(resolved.config())).put("mode", "train");
    }

    /** The same, of one that a training run would start with. */
    static ObjectNode trainable(ConfigOptions options, Context context) {
      Resolved resolved = context.load(options.config(), options.overrides());
      PreflightReport report = context.preflight(resolved);
      if (!report.refused().isEmpty()) {
        throw new RefusedException(report);
      }
      return config(resolved);
    }

    /**
     * What is measured: the option, else what the configuration names, else the standard one. The
     * configuration then says so, too.
     */
    static String chosen(String option, ObjectNode config, String key, String standard) {
      String configured = config.path(key).asString("auto");
      String named = configured.equals("auto") ? standard : configured;
      String value = option == null ? named : option;
      if (option != null && !configured.equals("auto") && !configured.equals(option)) {
        throw new ConfigException(
            "--" + key + " " + option + ": the configuration names " + configured);
      }
      config.put(key, value);
      return value;
    }

    @Override
    public Integer call() throws IOException {
      AnswerFile.refuseUnusable(out);
      ObjectNode request = Json.object().put("kind", kind);
      request(request, context);
      ObjectNode report = report(request);
      if (out != null) {
        AtomicFile.write(FileOps.SYSTEM, out, Json.prettyBytes(report));
      }
      if (json) {
        context.out().print(Json.pretty(report));
      } else {
        BenchTables.print(report, context.out());
      }
      return ExitCodes.OK;
    }

    /** A size that an option named; the core then need not fear for its arithmetic. */
    static void between(String option, long value, long least, long most) {
      between(option, value, least, most, least + " to " + most);
    }

    static void between(String option, long value, long least, long most, String expected) {
      if (value < least || value > most) {
        throw new BadInputException(option + " " + value + ": expected " + expected);
      }
    }

    /** One of the words that an option takes; null if it was not given. */
    static void oneOf(String option, String value, List<String> allowed) {
      if (value != null && !allowed.contains(value)) {
        throw new BadInputException(
            option + " " + value + ": expected one of " + String.join(", ", allowed));
      }
    }

    /** A count that an option named. */
    static void atLeast(String option, long value, long least) {
      between(option, value, least, Long.MAX_VALUE, "at least " + least);
    }

    /** What does not fit into memory is what was asked for: no run has failed. */
    private JsonNode measured(ObjectNode request) {
      try {
        return context.core().bench(request);
      } catch (NativeException e) {
        if (!e.code().equals("resource")) {
          throw e;
        }
        String asked = String.join(" ", command.commandLine().getParseResult().originalArgs());
        throw new BadInputException(asked + ": does not fit: " + e.getMessage());
      }
    }

    /** The core's report, and what the core cannot know: enough to compare it with another one. */
    private ObjectNode report(ObjectNode request) {
      ObjectNode report = Json.object().put("kind", kind);
      report.setAll((ObjectNode) measured(request));
      if (request.has("config")) {
        report.set("config", request.get("config"));
      }
      ObjectNode build = BuildInfo.of(context.core().describe());
      build.remove("natives");
      report.set("build", build);
      return report;
    }
  }

  /** {@code bench physics}. */
  @Command(
      name = "physics",
      description = "Our pool against a bare threaded loop of the same steps, interleaved.",
      mixinStandardHelpOptions = true,
      footer = {"", "Example", "  millrace bench physics --envs 256 --rounds 9 --json"})
  static final class Physics extends Bench {
    @Option(
        names = "--model",
        paramLabel = "FILE",
        description = "A humanoid's MJCF with the G1's names (default: our own G1).")
    private Path model;

    @Option(
        names = "--envs",
        paramLabel = "N",
        defaultValue = "256",
        description = "Environments, 1 to " + MOST_ROBOTS + " (default: ${DEFAULT-VALUE}).")
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
        description =
            "Threads of each side, 1 to " + MOST_THREADS + " (default: one for each core).")
    private Integer threads;

    Physics(Context context) {
      super(context, "physics");
    }

    @Override
    void request(ObjectNode request, Context context) {
      between("--envs", envs, 1, MOST_ROBOTS);
      atLeast("--ticks", ticks, 1);
      atLeast("--rounds", rounds, 1);
      request.put("envs", envs).put("ticks", ticks).put("rounds", rounds);
      if (threads != null) {
        between("--threads", threads, 1, MOST_THREADS);
        request.put("threads", threads);
      }
      if (model != null) {
        if (!Files.isRegularFile(model)) {
          String why = Files.isDirectory(model) ? "is a folder" : "no such file";
          throw new BadInputException("--model " + model + ": " + why);
        }
        request.put("model_file", model.toAbsolutePath().toString());
      }
    }
  }

  /** {@code bench replay}. */
  @Command(
      name = "replay",
      description = "From rows to a batch: ingress, ring and gather, without robots or a learner.",
      mixinStandardHelpOptions = true,
      footer = {
        "",
        "serial: publish, copy, commit and gather one after the other.",
        "prefetch: the same inside an update of 4 ms; what is left at its end is boundary_us.",
        "",
        "Example",
        "  millrace bench replay --device cuda --mode prefetch --json"
      })
  static final class Replay extends Bench {
    @Option(
        names = "--device",
        paramLabel = "NAME",
        defaultValue = "cpu",
        description = "Where the ring lives: cpu, cuda or metal (default: ${DEFAULT-VALUE}).")
    private String device;

    @Option(
        names = "--mode",
        paramLabel = "MODE",
        defaultValue = "serial",
        description = "serial or prefetch (default: ${DEFAULT-VALUE}).")
    private String mode;

    @Option(
        names = "--pipeline",
        paramLabel = "NAME",
        description = "device_resident or cpu_pinned_double_buffer (default: device_resident).")
    private String pipeline;

    @Option(
        names = "--layout",
        paramLabel = "NAME",
        description = "What a gather writes: row, sac or critic (default: row).")
    private String layout;

    @Option(names = "--bandwidth", description = "Also measure what plain copies reach.")
    private boolean bandwidth;

    @Option(
        names = "--envs",
        paramLabel = "N",
        defaultValue = "512",
        description = "Rows of a tick, 1 to " + MOST_ROBOTS + " (default: ${DEFAULT-VALUE}).")
    private int envs;

    @Option(
        names = "--capacity",
        paramLabel = "N",
        defaultValue = "4096",
        description =
            "Rows of the ring, at least (--depth + 1) x --envs, at most "
                + MOST_ROWS
                + " (default: ${DEFAULT-VALUE}).")
    private long capacity;

    @Option(
        names = "--depth",
        paramLabel = "N",
        defaultValue = "2",
        description = "Ingress slots, 1 to " + MOST_SLOTS + " (default: ${DEFAULT-VALUE}).")
    private int depth;

    @Option(
        names = "--samples",
        paramLabel = "N",
        defaultValue = "2048",
        description = "Rows of a batch, 1 to " + MOST_ROWS + " (default: ${DEFAULT-VALUE}).")
    private long samples;

    @Option(
        names = "--dims",
        paramLabel = "OBS,ACT,CRITIC",
        split = ",",
        hideParamSyntax = true,
        arity = "1",
        defaultValue = "98,29,101",
        description =
            "Floats of a row's parts, each 1 to "
                + MOST_FLOATS
                + " (default: ${DEFAULT-VALUE}, the G1's).")
    private int[] dims;

    @Option(
        names = "--runs",
        paramLabel = "N",
        defaultValue = "5",
        description = "Runs (default: ${DEFAULT-VALUE}).")
    private int runs;

    @Option(
        names = "--ticks",
        paramLabel = "N",
        defaultValue = "30",
        description = "Ticks of a run (default: ${DEFAULT-VALUE}).")
    private int ticks;

    @Option(
        names = "--counted",
        paramLabel = "N",
        defaultValue = "20",
        description = "Last ticks of a run that count, 1 to --ticks (default: ${DEFAULT-VALUE}).")
    private int counted;

    Replay(Context context) {
      super(context, "replay");
    }

    @Override
    void request(ObjectNode request, Context context) {
      oneOf("--device", device, DEVICES);
      oneOf("--mode", mode, List.of("serial", "prefetch"));
      oneOf("--pipeline", pipeline, List.of("device_resident", "cpu_pinned_double_buffer"));
      oneOf("--layout", layout, List.of("row", "sac", "critic"));
      if (dims.length != 3) {
        String got = Arrays.stream(dims).mapToObj(String::valueOf).collect(Collectors.joining(","));
        throw new BadInputException("--dims " + got + ": expected three numbers, OBS,ACT,CRITIC");
      }
      for (int each : dims) {
        between("--dims", each, 1, MOST_FLOATS);
      }
      between("--envs", envs, 1, MOST_ROBOTS);
      between("--capacity", capacity, 1, MOST_ROWS);
      between("--samples", samples, 1, MOST_ROWS);
      between("--depth", depth, 1, MOST_SLOTS);
      long slots = (depth + 1L) * envs;
      String room = "at least " + slots + " = (--depth + 1) x --envs";
      between("--capacity", capacity, slots, MOST_ROWS, room);
      atLeast("--runs", runs, 1);
      atLeast("--ticks", ticks, 1);
      between("--counted", counted, 1, ticks, "1 to " + ticks + ", which is --ticks");
      request.put("backend", device).put("mode", mode);
      if (pipeline != null) {
        request.put("pipeline", pipeline);
      }
      if (layout != null) {
        request.put("layout", layout);
      }
      if (bandwidth) {
        request.put("bandwidth", true);
      }
      request.put("envs", envs).put("capacity_rows", capacity).put("depth", depth);
      request.put("sample_rows", samples);
      request.put("observation_dim", dims[0]).put("action_dim", dims[1]);
      request.put("critic_dim", dims[2]);
      request.put("runs", runs).put("ticks", ticks).put("counted", counted);
    }
  }

  /** {@code bench update CONFIG}. */
  @Command(
      name = "update",
      description = "The update step of a task on a device, as a graph, and on the host's workers.",
      mixinStandardHelpOptions = true,
      footer = {
        "",
        "floor_us: what the bytes of a tick take at the speed of a plain copy there.",
        "",
        "Example",
        "  millrace bench update g1_walk_flat --device cuda --envs 4096"
      })
  static final class Update extends Bench {
    @Mixin private ConfigOptions options;

    @Option(
        names = "--device",
        paramLabel = "NAME",
        description = "cpu, cuda or metal (default: what the configuration names, else cpu).")
    private String device;

    @Option(
        names = "--envs",
        paramLabel = "N",
        defaultValue = "4096",
        description = "Robots, 1 to " + MOST_ROBOTS + " (default: ${DEFAULT-VALUE}).")
    private int envs;

    @Option(
        names = "--launches",
        paramLabel = "N",
        defaultValue = "50",
        description = "Launches that are timed together (default: ${DEFAULT-VALUE}).")
    private int launches;

    @Option(
        names = "--runs",
        paramLabel = "N",
        defaultValue = "5",
        description = "Runs (default: ${DEFAULT-VALUE}).")
    private int runs;

    Update(Context context) {
      super(context, "update");
    }

    @Override
    void request(ObjectNode request, Context context) {
      oneOf("--device", device, DEVICES);
      between("--envs", envs, 1, MOST_ROBOTS);
      atLeast("--launches", launches, 1);
      atLeast("--runs", runs, 1);
      ObjectNode config = config(options, context);
      request.put("backend", chosen(device, config, "device", "cpu"));
      request.put("envs", envs).put("launches", launches).put("runs", runs);
      request.set("config", config);
    }
  }

  /** {@code bench learner CONFIG}. */
  @Command(
      name = "learner",
      description = "A learner's update on a device, eagerly and as a graph.",
      mixinStandardHelpOptions = true,
      footer = {
        "",
        "An update is the mean of one period of learner.policy_frequency: that many critic steps",
        "and one actor step. tflop_per_s counts matrix products alone.",
        "",
        "Example",
        "  millrace bench learner g1_walk_flat --device cuda --precision bf16 --ops"
      })
  static final class Learner extends Bench {
    @Mixin private ConfigOptions options;

    @Option(
        names = "--device",
        paramLabel = "NAME",
        description = "cpu, cuda or metal (default: what the configuration names, else cpu).")
    private String device;

    @Option(
        names = "--precision",
        paramLabel = "NAME",
        description =
            "Of matrix products: fp32, tf32 or bf16 (default: what the configuration names, else"
                + " fp32).")
    private String precision;

    @Option(names = "--ops", description = "Also time every op by itself, longest first.")
    private boolean ops;

    @Option(
        names = "--without",
        description =
            "Also time the update without each kind of op, and without nothing: the difference is"
                + " what that kind costs beside the others.")
    private boolean without;

    @Option(
        names = "--launches",
        paramLabel = "N",
        defaultValue = "20",
        description = "Periods that are timed together (default: ${DEFAULT-VALUE}).")
    private int launches;

    @Option(
        names = "--runs",
        paramLabel = "N",
        defaultValue = "5",
        description = "Runs (default: ${DEFAULT-VALUE}).")
    private int runs;

    Learner(Context context) {
      super(context, "learner");
    }

    @Override
    void request(ObjectNode request, Context context) {
      oneOf("--device", device, DEVICES);
      oneOf("--precision", precision, List.of("fp32", "tf32", "bf16"));
      atLeast("--launches", launches, 1);
      atLeast("--runs", runs, 1);
      ObjectNode config = config(options, context);
      request.put("backend", chosen(device, config, "device", "cpu"));
      request.put("precision", chosen(precision, config, "precision", "fp32"));
      request.put("ops", ops).put("without", without);
      request.put("launches", launches).put("runs", runs);
      request.set("config", config);
    }
  }

  /** {@code bench train CONFIG}. */
  @Command(
      name = "train",
      description = "Where the time of a training tick goes.",
      mixinStandardHelpOptions = true,
      footer = {
        "",
        "Examples",
        "  millrace bench train g1_walk_flat -s env.num_envs=256 --json",
        "  millrace bench train g1_walk_flat -s device=cuda --modes host,eager,graph"
      })
  static final class Train extends Bench {
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

    @Option(
        names = "--modes",
        paramLabel = "MODE",
        split = ",",
        description = "host, eager, graph: the update step in each of these ways, in turn.")
    private List<Mode> modes = List.of();

    Train(Context context) {
      super(context, "train");
    }

    @Override
    void request(ObjectNode request, Context context) {
      atLeast("--ticks", ticks, 1);
      atLeast("--rounds", rounds, 1);
      request.put("ticks", ticks).put("rounds", rounds);
      if (!modes.isEmpty()) {
        request.set("modes", Json.tree(modes.stream().map(Mode::toString).toList()));
      }
      request.set("config", trainable(options, context));
    }
  }

  /** {@code bench graphs}. */
  @Command(
      name = "graphs",
      description = "Programs eagerly, as graphs, transformed, and as selected by measurement.",
      mixinStandardHelpOptions = true,
      footer = {
        "",
        "The programs have the structure of published cases; they are not the original models.",
        "Cases: one_host_scalar, varying_inputs, short_kernels, host_ops, small_programs,",
        "many_shapes, break_even.",
        "Ways: eager; graph, as recorded, inputs copied; cgct, transformed, inputs copied;",
        "cgct_pi, transformed, inputs read through the argument block; scg, what was selected.",
        "",
        "Example",
        "  millrace bench graphs --device cuda --rounds 30 --json"
      })
  static final class Graphs extends Bench {
    private static final long LEAST_ROUNDS = 10; // of a median that a way is selected by
    private static final List<String> CASES =
        List.of(
            "one_host_scalar",
            "varying_inputs",
            "short_kernels",
            "host_ops",
            "small_programs",
            "many_shapes",
            "break_even");

    @Option(
        names = "--device",
        paramLabel = "NAME",
        defaultValue = "cpu",
        description = "cpu, cuda or metal (default: ${DEFAULT-VALUE}).")
    private String device;

    @Option(names = "--case", paramLabel = "NAME", description = "One of the cases alone.")
    private String only;

    @Option(
        names = "--rounds",
        paramLabel = "N",
        defaultValue = "30",
        description =
            "Interleaved rounds of all ways, at least "
                + LEAST_ROUNDS
                + " (default: ${DEFAULT-VALUE}).")
    private int rounds;

    @Option(
        names = "--input-mib",
        paramLabel = "N",
        description =
            "Inputs of the case with large ones, 1 to "
                + MOST_MIB
                + " (default: 312 on a device with graphs).")
    private Integer inputMib;

    Graphs(Context context) {
      super(context, "graphs");
    }

    @Override
    void request(ObjectNode request, Context context) {
      oneOf("--device", device, DEVICES);
      oneOf("--case", only, CASES);
      atLeast("--rounds", rounds, LEAST_ROUNDS);
      request.put("backend", device).put("rounds", rounds);
      if (only != null) {
        request.put("case", only);
      }
      if (inputMib != null) {
        between("--input-mib", inputMib, 1, MOST_MIB);
        request.put("input_mib", inputMib);
      }
    }
  }
}

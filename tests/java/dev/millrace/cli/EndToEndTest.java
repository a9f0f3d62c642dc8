package dev.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.config.ConfigLoader;
import dev.millrace.core.Core;
import dev.millrace.core.Json;
import dev.millrace.core.Natives;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

/** The command line on the real core: these fail, and do not skip, without the native library. */
class EndToEndTest extends CommandLineTest<Core> {
  EndToEndTest() {
    super(Natives.load());
  }

  private void train(String name, int ticks) {
    List<String> args = new ArrayList<>(List.of("train", "cartpole_swingup", "--out", path(name)));
    for (String override :
        List.of(
            "run.max_seconds=0",
            "run.max_ticks=" + ticks,
            "log.interval_ticks=20",
            "learner.learning_starts=20",
            "env.threads=1",
            "replay.save=true")) {
      args.addAll(List.of("-s", override));
    }
    assertEquals(0, run(args.toArray(String[]::new)), () -> err);
  }

  private List<String> metrics(String name) throws IOException {
    List<String> lines = Files.readAllLines(folder.resolve(name).resolve("metrics.csv"));
    String[] columns = lines.get(0).split(",", -1);
    List<String> stable = new ArrayList<>();
    for (String line : lines) {
      String[] cells = line.split(",", -1);
      StringBuilder kept = new StringBuilder();
      for (int i = 0; i < cells.length; i++) {
        kept.append(columns[i].matches(".*(_s|_ms)") ? "" : cells[i] + ",");
      }
      stable.add(kept.toString());
    }
    return stable;
  }

  private byte[] state(String name, String file) throws IOException {
    return Files.readAllBytes(folder.resolve(name + "/checkpoints/tick-000000000080/" + file));
  }

  @Test
  void everyBuiltInConfigurationPassesThePreflightOnThisMachine() {
    for (String name : ConfigLoader.BUILT_IN) {
      assertEquals(0, run("preflight", name, "--profile", "laptop"), () -> name + out + err);
      assertEquals(0, run("config", "show", name, "--profile", "full"), () -> err);
      String task = ConfigLoader.load(name, List.of("profile=full"), () -> null).config().task();
      assertEquals(0, run("tasks", task), () -> err);
    }
  }

  @Test
  void aGraphThatCannotBeIsRefusedWithEveryReason() throws IOException {
    String[] request = {
      "g1_walk_flat",
      "--profile=laptop",
      "-sgraph=on",
      "-slearner.observation_normalizer=true",
      "-sdevice=cpu"
    };
    List<String> reasons = List.of("BACKEND_HAS_NO_GRAPHS", "HOST_READ");
    assertEquals(3, run(with(request, "preflight")), () -> out + err);
    reasons.forEach(id -> assertTrue(out.contains("REFUSED  " + id), out));
    assertTrue(out.contains("graph on: the update step cannot be captured"), out);
    assertEquals(3, run(with(request, "train", "--out", path("none"))), () -> out + err);
    reasons.forEach(id -> assertTrue(err.contains("\n  " + id + " "), err));
    assertFalse(Files.exists(folder.resolve("none")));
    assertEquals(0, run(with(request, "graph", "show", "--dot", path("u.dot"))), () -> err);
    reasons.forEach(id -> assertTrue(out.contains("REFUSED  " + id), out));
    assertTrue(out.contains("  3 rewards (sum_rewards)\n"), out);
    String dot = Files.readString(folder.resolve("u.dot"));
    assertTrue(dot.contains("\"physics/field/gyro\" -> \"op update\";"), dot);
    assertEquals(0, run(with(request, "graph", "show", "--json")), () -> err);
    JsonNode update = Json.parse(out).path("graphs").path("update");
    assertEquals(7, update.path("ops").get(0).path("parts").size());
    assertEquals(0, run(with(request, "graph", "show", "--program", "learner_critic")), () -> err);
    assertTrue(out.contains("\nop 0 unpack on cpu (fastsac_programs.cpp:"), out);
    assertEquals(2, run(with(request, "graph", "show", "--program", "learner_critc")), out);
    assertTrue(err.contains("did you mean \"learner_critic\"?"), err);
    String noRobot = "-senv.model_file=/none/robot.xml";
    assertEquals(3, run(with(request, "graph", "show", noRobot)), out);
    assertTrue(err.contains("MODEL_UNREADABLE env.model_file: "), err);
  }

  @Test
  void aBenchMeasuresWhatTheConfigurationNames() {
    String[] metal = {"cartpole_swingup", "--profile=laptop", "-sdevice=metal"};
    for (String bench : List.of("update", "learner", "train")) {
      assertEquals(3, run(with(metal, "bench", bench)), () -> bench + out + err);
      assertTrue(err.contains("metal"), err);
    }
    String[] twice = {"cartpole_swingup", "-sdevice=metal", "--device=cpu"};
    assertEquals(2, run(with(twice, "bench", "learner")), () -> out + err);
    assertTrue(err.contains("--device cpu: the configuration names metal"), err);
    String[] modes = {"cartpole_swingup", "--profile=laptop", "-sdevice=cpu", "--modes=graph"};
    assertEquals(2, run(with(modes, "bench", "train")), () -> out + err);
    assertTrue(err.startsWith("millrace: --modes graph: collector.update: device was"), err);
    assertTrue(err.endsWith("; --modes host runs on every device\n"), err);
    String[] graph = {"cartpole_swingup", "--profile=laptop", "-sdevice=cpu", "-sgraph=on"};
    assertEquals(3, run(with(graph, "bench", "train")), () -> out + err);
  }

  @Test
  void anUpdateIsTimedWithoutEachKindOfOp() {
    String[] small = {"cartpole_swingup", "--profile=laptop", "-slearner.batch=64", "--runs=1"};
    assertEquals(0, run(with(small, "bench", "learner", "--launches=1", "--json")), () -> err);
    assertTrue(Json.parse(out).path("without").isMissingNode(), out);
    assertEquals(0, run(with(small, "bench", "learner", "--without", "--json")), () -> err);
    assertTrue(Json.parse(out).path("without").toString().contains("adamw"), out);
  }

  private static String[] with(String[] request, String... command) {
    List<String> args = new ArrayList<>(List.of(command));
    args.addAll(List.of(request));
    return args.toArray(String[]::new);
  }

  @Test
  void aMotionThatWasMadeCanBeFollowed() throws IOException {
    assertEquals(0, run("motion", "make", path("clip.npz")), () -> err);
    assertEquals(0, run("motion", "info", path("clip.npz"), "--json"), () -> err);
    assertEquals(500, Json.parse(out).path("frames").asInt());
    String motion = "env.motion_file=" + path("clip.npz");
    assertEquals(0, run("preflight", "g1_motion_tracking_sac", "-s", motion), () -> out + err);
    Files.writeString(folder.resolve("clip.npz"), "no archive");
    assertEquals(2, run("motion", "make", path("clip.npz")));
    assertEquals("millrace: " + path("clip.npz") + ": exists already; name another file\n", err);
    assertEquals("no archive", Files.readString(folder.resolve("clip.npz")));
    assertEquals(2, run("preflight", "g1_motion_tracking_sac", "-s", motion));
    assertTrue(err.contains("it is no npz archive"), err);
    Files.delete(folder.resolve("clip.npz"));
    assertEquals(2, run("preflight", "g1_motion_tracking_sac", "-s", motion));
    String place = "millrace: -s " + motion + ": env.motion_file: motion file '" + path("clip.npz");
    assertTrue(err.startsWith(place + "': is not there or is no regular file; allowed: "), err);
    assertEquals(1, err.lines().count(), err);
  }

  @Test
  void aResumedRunEqualsTheUninterruptedOneBitForBit() throws IOException {
    train("whole", 80);
    train("half", 40);
    assertEquals(0, run("resume", path("half"), "--ticks", "40"), () -> err);
    assertEquals(5, metrics("whole").size());
    assertEquals(metrics("whole"), metrics("half"));
    for (String file : List.of("state.safetensors", "replay.safetensors")) {
      assertArrayEquals(state("whole", file), state("half", file), file);
    }
    assertEquals(0, run("manifest", "verify", path("half")), () -> out);
    assertEquals(0, run("play", path("half"), "--episodes", "3", "--json"), () -> err);
    JsonNode played = Json.parse(out);
    assertEquals(3, played.path("episodes").size());
    assertEquals(500, played.path("episode_length_mean").asDouble());
  }

  @Test
  void anExpressionIsCheckedAtItsPlaceAndTrained() throws IOException {
    Path mine =
        Files.writeString(
            folder.resolve("mine.yaml"),
            """
            task: cartpole_swingup
            run: {max_ticks: 40, max_seconds: 0}
            log: {interval_ticks: 20}
            rewards:
              lean: {weight: -1.0, expr: "norm2(body_quta.xy)"}
            """);
    for (String command : List.of("train", "preflight")) {
      assertEquals(2, run(command, mine.toString(), "--profile", "laptop"), out);
      String place = "millrace: " + mine + ":5:30: rewards.lean.expr: column 7: ";
      assertTrue(
          err.startsWith(place + "unknown name \"body_quta\"; did you mean \"body_quat\"?"), err);
      assertEquals(1, err.lines().count(), err);
      String second = "rewards.more={weight: 1, expr: 1 +}";
      assertEquals(2, run(command, mine.toString(), "--profile", "laptop", "-s", second), out);
      assertTrue(err.startsWith("millrace: 2 mistakes in the configuration:\n  " + mine + ":5:30"));
      assertTrue(err.contains("\n  -s " + second + ": rewards.more.expr: column 4: "), err);
    }
    String fixed = "rewards.lean.expr=norm2(body_quat.xy)";
    assertEquals(
        0,
        run("train", mine.toString(), "--profile", "laptop", "-s", fixed, "--out", path("lean")),
        () -> err);
    assertTrue(metrics("lean").get(0).contains("reward/lean,"), metrics("lean").get(0));
    assertEquals(0, run("play", path("lean"), "--episodes", "1"), () -> err);
    assertEquals(0, run("terms", "--kind", "expression"), () -> err);
    assertTrue(out.contains("body_quat"), out);
  }

  @Test
  void aRewardThatIsNotFiniteIsSaidOnceWithItsKeyAndCount() throws IOException {
    Path mine =
        Files.writeString(
            folder.resolve("mine.yaml"),
            """
            task: cartpole_swingup
            env: {num_envs: 4, threads: 1}
            run: {max_ticks: 40, max_seconds: 0}
            log: {interval_ticks: 20}
            rewards:
              lean: {weight: 1.0, expr: "1 / 0"}
            """);
    assertEquals(0, run("train", mine.toString(), "--out", path("run")), () -> err);
    List<String> warnings = out.lines().filter(line -> line.startsWith("warning: ")).toList();
    String warning =
        "warning: 80 ticks of a robot were not finite so far, and each ends its episode; the first"
            + " bad one: tick 0, environment 0: rewards.lean was not finite";
    assertEquals(List.of(warning), warnings);
    JsonNode manifest = Json.parse(Files.readString(folder.resolve("run/manifest.json")));
    JsonNode physics = manifest.path("device").path("physics");
    assertEquals(160, physics.path("non_finite").asLong());
    assertTrue(physics.path("first_bad").asString().endsWith(": rewards.lean was not finite"));
    String[] learning = {"-s", "learner.learning_starts=10", "-s", "learner.batch=16"};
    assertEquals(4, run(with(learning, "train", mine.toString(), "--out", path("learns"))));
    String nothing = "so there is nothing to learn (80 of 80); the first bad one: tick 0";
    assertTrue(err.contains(nothing), err);
  }

  @Test
  void refusalsSayTheArithmeticAndWriteNothing() {
    int code =
        run(
            "train",
            "g1_walk_flat",
            "--profile",
            "laptop",
            "--out",
            path("refused"),
            "-s",
            "env.num_envs=512",
            "-s",
            "replay.capacity_rows=4096");
    assertEquals(3, code);
    assertTrue(err.contains("REPLAY_CAN_NEVER_START"), err);
    assertTrue(err.contains("10 x 512 = 5,120"), err);
    assertFalse(Files.exists(folder.resolve("refused")));
  }

  @Test
  void aBrokenModelIsOneFindingAndTheProcessSurvives() throws IOException {
    Path model = Files.writeString(folder.resolve("broken.xml"), "<mujoco><worldbody>");
    assertEquals(3, run("preflight", "cartpole_swingup", "-s", "env.model_file=" + model));
    assertTrue(out.contains("broken.xml"), out);
    Files.writeString(model, "<mujoco><include file=\"../other.xml\"/></mujoco>");
    assertEquals(3, run("preflight", "cartpole_swingup", "-s", "env.model_file=" + model));
    assertTrue(out.contains("../other.xml"), out);
  }
}

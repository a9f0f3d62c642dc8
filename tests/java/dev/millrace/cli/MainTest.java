package dev.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.checkpoint.CheckpointException;
import dev.millrace.checkpoint.FakeEngine;
import dev.millrace.config.ConfigException;
import dev.millrace.core.Json;
import dev.millrace.core.NativeException;
import dev.millrace.run.BadInputException;
import dev.millrace.run.FakeCore;
import dev.millrace.run.RunFailure;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

class MainTest extends CommandLineTest<FakeCore> {
  MainTest() {
    super(new FakeCore());
  }

  private int train(String name, String... more) {
    List<String> args = new java.util.ArrayList<>();
    args.addAll(List.of("train", "cartpole_swingup", "--out", path(name)));
    args.addAll(List.of("-s", "run.max_ticks=20", "-s", "log.interval_ticks=10"));
    args.addAll(List.of(more));
    return run(args.toArray(String[]::new));
  }

  @Test
  void failuresHaveTheirCodes() {
    assertEquals(2, ExitCodes.of(new ConfigException("x")));
    assertEquals(2, ExitCodes.of(new BadInputException("x")));
    assertEquals(2, ExitCodes.of(new CheckpointException("x")));
    assertEquals(2, ExitCodes.of(new IllegalArgumentException("x")));
    assertEquals(2, ExitCodes.of(new IOException("x")));
    assertEquals(4, ExitCodes.of(new RunFailure("x", null)));
    assertEquals(4, ExitCodes.of(new NativeException("device", "x")));
    assertEquals(3, ExitCodes.of(new NativeException("unavailable", "x")));
    assertEquals(1, ExitCodes.of(new IllegalStateException("x")));
    assertEquals(1, ExitCodes.of(new NullPointerException()));
  }

  @Test
  void everyCommandHelpsWithAnExample() {
    for (String command :
        List.of(
            "train",
            "resume",
            "play",
            "preflight",
            "graph",
            "graph show",
            "bench",
            "bench physics",
            "bench replay",
            "bench learner",
            "bench train",
            "bench graphs",
            "selection",
            "selection show",
            "compare",
            "trace",
            "trace summary",
            "manifest",
            "manifest show",
            "manifest verify",
            "manifest diff",
            "motion",
            "motion info",
            "motion convert",
            "motion make",
            "tasks",
            "terms",
            "config",
            "config show",
            "doctor")) {
      String[] args = (command + " --help").split(" ");
      assertEquals(0, run(args), command);
      assertTrue(out.contains("Example"), command);
      assertTrue(out.contains("  millrace " + command), command + out);
    }
    for (String command : List.of("train", "resume")) {
      run(command, "--help");
      assertTrue(out.contains("whichever comes first; 0 is no limit."), out);
    }
    assertEquals(0, run("--help"));
    assertTrue(out.contains("3   refused by preflight"));
    assertEquals(0, run("--version"));
  }

  @Test
  void doctorSaysHowFarEachDeviceWasVerified() {
    assertEquals(0, run("doctor"));
    assertTrue(out.contains("available 2 cores (verified: device)"), out);
    assertTrue(out.contains("not available: not built (verified: device)"), out);
    assertTrue(out.contains("available Apple M0 (verified: host)"), out);
  }

  @Test
  void usageErrorsAreOneLine() {
    assertOneLine(2, "millrace train", "train");
    assertOneLine(2, "--bogus", "train", "cartpole_swingup", "--bogus");
    assertOneLine(2, "'trian' (did you mean train?)", "trian");
    assertOneLine(2, "'phisics' (did you mean physics?)", "bench", "phisics");
    assertOneLine(2, "'tr' (see: millrace --help)", "tr");
    assertOneLine(2, "(did you mean --profile?)", "train", "cartpole_swingup", "--profil=x");
    assertOneLine(2, "(see: millrace train --help)", "train", "cartpole_swingup", "-x");
    assertOneLine(2, "--seed", "train", "cartpole_swingup", "--seed", "x");
    assertOneLine(2, "Missing required subcommand", "manifest");
    assertOneLine(2, "Missing required subcommand");
  }

  @Test
  void configurationErrorsAreOneLineAndLoseNothing() throws IOException {
    assertOneLine(2, "learner.bach; did you", "train", "g1_walk_flat", "-s", "learner.bach=1");
    assertOneLine(2, "no such file", "train", path("none.yaml"));
    Path brackets = Files.writeString(folder.resolve("b.yaml"), "[".repeat(100_000));
    assertOneLine(2, "nested deeper", "train", brackets.toString());
    assertOneLine(2, "rewards.up: no such", "train", "g1_walk_flat", "-s", "rewards.up.weight=1");
    Files.createDirectory(folder.resolve("there"));
    Files.writeString(folder.resolve("file"), "x");
    for (String command : List.of("train", "preflight")) {
      assertOneLine(2, "exists already", command, "g1_walk_flat", "--out", path("there"));
      String inFile = "cannot create " + path("file/run") + ": " + path("file") + ": Not a dir";
      assertOneLine(2, inFile, command, "g1_walk_flat", "--out", path("file/run"));
      String inProc = "cannot create /proc/none/run: /proc: nothing can be created there";
      assertOneLine(2, inProc, command, "g1_walk_flat", "--out", "/proc/none/run");
    }
    assertEquals(0, run("preflight", "g1_walk_flat", "--out", path("new/run")), () -> err);
    assertFalse(Files.exists(folder.resolve("new")));
    assertOneLine(2, "no such run directory", "resume", path("none"));
    assertOneLine(2, "no run directory", "play", path("there"));
    assertOneLine(2, "no such file", "manifest", "show", path("none"));
    assertEquals(List.of(), core.opened);
  }

  @Test
  void anEmptyPathIsNone() {
    for (String command :
        List.of(
            "train cartpole_swingup --out",
            "preflight cartpole_swingup --out",
            "bench physics --out",
            "graph show cartpole_swingup --dot",
            "resume",
            "play",
            "compare",
            "manifest verify",
            "trace summary",
            "motion make")) {
      List<String> args = new java.util.ArrayList<>(List.of(command.split(" ")));
      args.add("");
      assertOneLine(2, "expected a file or folder, got \"\"", args.toArray(String[]::new));
    }
    for (String command : List.of("train", "preflight")) {
      assertOneLine(2, "no built-in configuration \"\" and no such file; known: ", command, "");
    }
  }

  @Test
  void allMistakesOfAConfigurationAreSaidAtOnce() {
    for (String command : List.of("preflight", "train")) {
      assertEquals(2, run(command, "g1_walk_flat", "-s", "seed=x", "-s", "learner.tau=7"));
      assertEquals(
          """
          millrace: 2 mistakes in the configuration:
            -s seed=x: seed: expected an integer, got "x"
            -s learner.tau=7: learner.tau: expected at most 1, got 7
          """,
          err);
    }
  }

  @Test
  void anOptionDoesNotBeatAnOverrideInSilence() {
    String seeds = "--seed 3: -s seed=4 says otherwise; leave one of the two away";
    assertOneLine(2, seeds, "config", "show", "g1_walk_flat", "--seed", "3", "-s", "seed=4");
    assertOneLine(2, seeds, "config", "show", "cartpole_swingup", "-s", "seed=4", "--seed", "3");
    String profiles = "--profile full: -s profile=laptop says otherwise";
    assertOneLine(2, profiles, "preflight", "g1_walk_flat", "--profile=full", "-sprofile=laptop");
    assertEquals(0, run("config", "show", "g1_walk_flat", "--seed", "3", "-s", "seed=3"));
    assertTrue(out.contains("\nseed: 3\n"), out);
    String[] last = {"config", "show", "g1_walk_flat", "-sseed=4", "-sseed=3", "--seed=3"};
    assertEquals(0, run(last), () -> err);
    assertEquals(0, run("config", "show", "g1_walk_flat", "-s", "seed=4", "-s", "seed=3"));
    assertTrue(out.contains("\nseed: 3\n"), out);
    train("a");
    String ticks = "--ticks 5: -s run.max_ticks=90 says otherwise; leave one of the two away";
    assertOneLine(2, ticks, "resume", path("a"), "--ticks", "5", "-s", "run.max_ticks=90");
    assertEquals(0, run("resume", path("a"), "--ticks", "5", "-s", "run.max_seconds=9"));
    assertEquals(0, run("manifest", "show", path("a"), "config.run.max_seconds"));
    assertEquals("9.0", out.strip());
  }

  @Test
  void aKeySetInVainIsAWarning() {
    String[] vain = {"-s", "learner.critic=scalar", "-s", "learner.atoms=7"};
    String why = "7 has no effect with learner.critic: scalar";
    assertEquals(0, train("vain", vain), () -> err);
    assertTrue(out.contains("KEY_WITHOUT_EFFECT learner.atoms: " + why), out);
    assertEquals(0, run("manifest", "verify", path("vain")), () -> out);
    assertEquals(0, run("manifest", "show", path("vain"), "preflight"));
    assertTrue(out.contains(why), out);
  }

  @Test
  void aRefusalIsCodeThreeAndWritesNothing() {
    core.refuse("REPLAY_CAN_NEVER_START", "10 x 512 = 5,120 > 8 x 512 = 4,096");
    assertEquals(3, train("refused"));
    assertTrue(err.contains("REPLAY_CAN_NEVER_START replay: 10 x 512 = 5,120 > 8 x 512"), err);
    assertFalse(Files.exists(folder.resolve("refused")));
    assertEquals(3, run("preflight", "g1_walk_flat"));
    assertTrue(out.contains("refused: this run would not start"), out);
    assertEquals(3, run("preflight", "g1_walk_flat", "--json"));
    assertEquals("REFUSED", Json.parse(out).path("findings").get(0).path("verdict").asString());
  }

  @Test
  void preflightShowsEveryTermAndGraphShowEveryCarrier() throws IOException {
    assertEquals(0, run("preflight", "g1_walk_flat"), () -> err);
    assertTrue(out.contains("\ngraph auto: the update step can be captured\n"), out);
    String row = out.lines().filter(line -> line.startsWith("event")).findFirst().orElse(out);
    assertEquals(
        List.of("event", "push", "off", "event", "7", "1", "INTERVAL", "EAGER_ONLY"),
        List.of(row.split(" {2,}")).subList(0, 8));
    assertTrue(row.endsWith("no timer (add one)"), row);
    assertEquals(0, run("graph", "show", "g1_walk_flat", "--dot", path("u.dot")), () -> err);
    assertTrue(out.contains("op tick on cpu (a \"b\")\n  1 push\n"), out);
    assertTrue(out.contains("timer    2,048  cpu     update      tick     tick\n"), out);
    assertTrue(out.contains("total    4,096"), out);
    assertEquals(
        """
        digraph "update" {
          rankdir=LR;
          "timer" [label="timer\\n2,048 B"];
          "row" [label="row\\n2,048 B"];
          "op tick" [shape=box, label="op tick\\na \\"b\\"\\n1 push"];
          "timer" -> "op tick";
          "op tick" -> "timer";
          "op tick" -> "row";
        }
        """,
        Files.readString(folder.resolve("u.dot")));
    assertOneLine(2, "cannot write", "graph", "show", "g1_walk_flat", "--dot", path("no/u.dot"));
  }

  @Test
  void trainResumePlayAndManifestWorkTogether() {
    assertEquals(0, train("a"), () -> err);
    assertTrue(
        out.contains("profile laptop (no GPU (cuda: not built; metal: verified: host))"), out);
    assertEquals(0, run("manifest", "verify", path("a")), () -> out + err);
    assertOneLine(
        2,
        "nothing left to do: at tick 20 it is past its run.max_ticks of 20; go on with --ticks N",
        "resume",
        path("a"));
    assertEquals(0, run("resume", path("a"), "--ticks", "10"), () -> err);
    assertTrue(out.contains("replay  "), out);
    assertTrue(out.contains("absent"), out);
    assertTrue(out.contains("the checkpoint holds no replay"), out);
    assertEquals(0, run("resume", path("a"), "-s", "run.max_ticks=50", "--json"), () -> err);
    JsonNode result = Json.parse(out);
    assertEquals(50, result.path("ticks").asLong());
    assertEquals(0, run("play", path("a"), "--episodes", "3", "--json"), () -> err);
    assertEquals(3, Json.parse(out).path("episodes").size());
    assertEquals(50, Json.parse(out).path("checkpoint_tick").asLong());
    assertEquals("cpu", Json.parse(out).path("device").asString());
    assertEquals(0, run("play", path("a"), "--checkpoint", "30"), () -> err);
    assertTrue(out.contains("checkpoint of tick 30: mean return"), out);
    assertTrue(out.endsWith("20 episodes on cpu\n"), out);
    assertOneLine(2, "no checkpoint of tick 7", "play", path("a"), "--checkpoint", "7");
    assertEquals(0, run("manifest", "show", path("a"), "training.updates"));
    assertEquals("100\n", out);
    assertEquals(0, run("manifest", "show", path("a"), "replay"));
    assertTrue(out.contains("host_bytes"), out);
    assertOneLine(2, "has no nothing", "manifest", "show", path("a"), "nothing");
    assertEquals(0, train("b"));
    assertEquals(0, run("manifest", "diff", path("a"), path("b"), "--json"));
    assertTrue(Json.parse(out).size() > 3);
  }

  @Test
  void aPolicyIsPlayedWithoutItsReplayAndNotResumed() throws IOException {
    assertEquals(0, train("a", "-s", "replay.save=true"), () -> err);
    Files.delete(folder.resolve("a/checkpoints/tick-000000000020/replay.safetensors"));
    assertEquals(0, run("play", path("a"), "--episodes", "3"), () -> err);
    assertEquals("", err);
    assertEquals(0, run("play", path("a"), "--checkpoint", "20"), () -> err);
    assertOneLine(2, "no complete checkpoint", "resume", path("a"), "--ticks", "10");
    assertTrue(out.contains("skipped tick-000000000020: "), out);
    assertTrue(out.contains("replay.safetensors: no such file or folder"), out);
  }

  @Test
  void playNamesThePlaceOfAKeyThatTheCoreRefuses() throws IOException {
    train("a");
    List<String> lines = Files.readAllLines(folder.resolve("a/config.yaml"));
    int line = lines.indexOf(lines.stream().filter(each -> each.contains(" tau:")).findAny().get());
    core.engines =
        () -> {
          throw new IllegalArgumentException("learner.tau: 7 is too much");
        };
    String place = path("a/config.yaml") + ":" + (line + 1) + ":8: ";
    assertOneLine(2, place + "learner.tau: 7 is too much", "play", path("a"));
  }

  @Test
  void resumeNamesThePlaceOfARewardThatIsNone() throws IOException {
    train("a");
    Path config = folder.resolve("a/config.yaml");
    Files.writeString(config, Files.readString(config).replace("  upright:", "  uprigt:"));
    Path info = folder.resolve("a/checkpoints/tick-000000000020/checkpoint.json");
    Files.writeString(info, Files.readString(info).replaceAll("\"config_sha256\".*,", ""));
    String part = ": rewards.uprigt: no such reward term; did you mean \"upright\"?";
    assertOneLine(2, part, "resume", path("a"), "--ticks", "5");
    assertTrue(err.startsWith("millrace: " + config + ":"), err);
  }

  @Test
  void aConfigurationThatWasChangedIsNotGoneOnWith() throws IOException {
    train("a");
    Path config = folder.resolve("a/config.yaml");
    String before = Files.readString(config);
    String manifest = Files.readString(folder.resolve("a/manifest.json"));
    for (String change : List.of("tau: 0.02", "max_ticks: 20", "actor_hidden: 64")) {
      assertTrue(before.contains(change), before);
      Files.writeString(config, before.replace(change, change + "1"));
      String part = config + ": was changed since the run began: put it back";
      assertOneLine(2, part, "resume", path("a"), "--ticks", "5");
      assertTrue(err.contains("; change run, log and checkpoint with -s KEY=VALUE"), err);
      assertTrue(err.endsWith(" with a new run: millrace train " + config + "\n"), err);
      assertEquals(0, run("play", path("a"), "--episodes", "1"), () -> err);
      assertEquals(
          "warning: " + config + ": was changed since the run began, and is played as it is now\n",
          err);
    }
    assertEquals(manifest, Files.readString(folder.resolve("a/manifest.json")));
    Files.writeString(config, before);
    assertEquals(0, run("resume", path("a"), "-s", "run.max_ticks=30"), () -> err);
    assertEquals(0, run("resume", path("a"), "--ticks", "10"), () -> err);
  }

  @Test
  void aFileWhereAFolderBelongsIsNamedAndTheOtherWayRound() throws IOException {
    train("a", "-s", "log.tensorboard=false");
    for (String name : List.of("tb", "checkpoints")) {
      Path moved = folder.resolve("a/" + name);
      if (Files.exists(moved)) {
        Files.move(moved, folder.resolve(name));
      }
      Files.writeString(moved, "mine");
      String part = moved + ": expected a folder, and it is a file; move it away";
      assertOneLine(2, part, "resume", path("a"), "--ticks", "5");
      Files.delete(moved);
    }
    Files.move(folder.resolve("checkpoints"), folder.resolve("a/checkpoints"));
    for (String name :
        List.of("metrics.csv", "manifest.json", "config.yaml", ".lock", "trace.json")) {
      Path moved = folder.resolve("a/" + name);
      if (Files.exists(moved)) {
        Files.move(moved, folder.resolve(name));
      }
      Files.createDirectory(moved);
      String part = moved + ": expected a file, and it is a folder; move it away";
      assertOneLine(2, part, "resume", path("a"), "--ticks", "5");
      Files.delete(moved);
      if (Files.exists(folder.resolve(name))) {
        Files.move(folder.resolve(name), moved);
      }
    }
    Path checkpoint = Files.writeString(folder.resolve("a/checkpoints/tick-000000000030"), "mine");
    assertOneLine(2, checkpoint + ": is no folder", "play", path("a"), "--checkpoint", "30");
    Path file = Files.writeString(folder.resolve("file"), "mine");
    assertOneLine(2, file + ": is no folder; expected a run directory", "play", file.toString());
    assertEquals(0, run("resume", path("a"), "--ticks", "5"), () -> err);
    assertTrue(out.contains("skipped tick-000000000030: " + checkpoint + ": is no folder"), out);
  }

  @Test
  void whatIsNoManifestIsNamed() throws IOException {
    Path file = folder.resolve("m.json");
    for (String command : List.of("show", "verify")) {
      Files.writeString(file, "");
      assertOneLine(
          2, file + ": not valid JSON: it is empty", "manifest", command, file.toString());
      for (String text : List.of("[]", "3", "null")) {
        Files.writeString(file, text);
        assertOneLine(2, file + ": expected a JSON object", "manifest", command, file.toString());
      }
    }
    Files.writeString(file, "{\"a\": 12345678901234567890123, \"b\": 1e400}");
    assertEquals(0, run("manifest", "show", file.toString()), () -> err);
    assertTrue(out.contains("12345678901234567890123"), out);
  }

  @Test
  void damageIsSkippedAndSaid() throws IOException {
    train("a", "-s", "checkpoint.interval_ticks=10");
    Path state = folder.resolve("a/checkpoints/tick-000000000020/state.safetensors");
    Files.write(state, new byte[] {1, 2, 3});
    assertEquals(0, run("resume", path("a")), () -> err);
    assertTrue(out.contains("skipped tick-000000000020: "), out);
    assertTrue(out.contains("at tick 10"), out);
    assertEquals(0, run("manifest", "verify", path("a")), () -> out);
    Files.write(state, new byte[] {1, 2, 3});
    Files.write(
        folder.resolve("a/checkpoints/tick-000000000010/checkpoint.json"), new byte[] {'{'});
    assertOneLine(2, "no complete checkpoint", "resume", path("a"));
  }

  @Test
  void verifyKnowsACheckpointThatWasDamagedBeforeTheRunWentOn() throws IOException {
    train("a", "-s", "checkpoint.interval_ticks=10");
    Path state = folder.resolve("a/checkpoints/tick-000000000010/state.safetensors");
    Files.write(state, new byte[] {1, 2, 3});
    assertEquals(0, run("resume", path("a"), "--ticks", "10"), () -> err);
    assertEquals(2, run("manifest", "verify", path("a")), () -> out);
    assertTrue(out.startsWith("checkpoints/tick-000000000010: "), out);
    assertTrue(out.contains("state.safetensors: the file has only 3 bytes"), out);
  }

  @Test
  void aStoppedResumeSaysWithWhichOfItsLimitsToGoOn() {
    List<String> overrides = List.of("run.max_ticks=90", "log.interval_ticks=5");
    assertEquals("", ResumeCommand.onward(List.of(), null, 20, 30));
    assertEquals(
        " -s run.max_ticks=90 -s log.interval_ticks=5",
        ResumeCommand.onward(overrides, null, 20, 30));
    assertEquals(" --ticks 15", ResumeCommand.onward(List.of(), 25L, 20, 30));
  }

  @Test
  void aFailedRunIsCodeFour() {
    core.engines = () -> new FakeEngine(1).failingAfter(5);
    assertEquals(4, train("bad"));
    assertEquals(
        "millrace: the run failed in learner.update 5 on learner: the fake engine broke",
        err.strip());
    assertEquals(0, run("manifest", "verify", path("bad")), () -> out);
    assertEquals(4, train("bad2", "--verbose"));
    assertTrue(err.contains("\tat dev.millrace."), err);
  }

  @Test
  void tablesAreTextOrJson() {
    for (String command :
        List.of(
            "tasks",
            "tasks g1_walk_flat",
            "terms",
            "terms alive",
            "terms --kind reward",
            "doctor",
            "config show g1_walk_flat",
            "preflight g1_walk_flat",
            "graph show g1_walk_flat",
            "bench physics",
            "bench replay --device cpu --mode prefetch --dims 160,29,289",
            "bench train g1_walk_flat",
            "motion info",
            "motion convert a.csv b.npz",
            "motion make b.npz --model robot.xml")) {
      assertEquals(0, run(command.split(" ")), () -> command + err);
      assertFalse(out.isBlank());
      assertEquals(0, run((command + " --json").split(" ")), command);
      Json.parse(out);
    }
    assertOneLine(2, "did you mean \"g1_walk_flat\"?", "tasks", "g1_walk_fla");
    assertOneLine(2, "did you mean \"alive\"?", "terms", "alife");
    assertOneLine(2, "did you mean \"reward\"?", "terms", "--kind", "rewards");
  }

  @Test
  void anAnswerIsNotWorkedForInVain() {
    for (String command :
        List.of(
            "bench physics --out",
            "graph show g1_walk_flat --dot",
            "motion make",
            "motion convert a.csv")) {
      String[] args = (command + " /proc/none").split(" ");
      assertOneLine(2, "cannot write /proc/none: /proc: nothing can be created there", args);
    }
    assertFalse(core.report.has("request"), "measured for nothing");
  }

  @Test
  void noAnswerIsWrittenOverAFile() throws IOException {
    Path file = Files.writeString(folder.resolve("mine.json"), "mine");
    for (String command :
        List.of(
            "bench physics --out",
            "bench train g1_walk_flat --out",
            "graph show g1_walk_flat --dot",
            "motion make",
            "motion convert a.csv")) {
      String[] args = (command + " " + file).split(" ");
      assertOneLine(2, file + ": exists already; name another file", args);
    }
    assertEquals("mine", Files.readString(file));
    assertFalse(core.report.has("request"), "measured for nothing");
  }

  @Test
  void aWrongValueOfAnOptionIsNamedBesideWhatIsAllowed() {
    String number = "--seed': expected a whole number of at most 9223372036854775807, got \"x\"";
    assertOneLine(2, number, "train", "cartpole_swingup", "--seed", "x");
    String names = "--profile': expected one of auto, full, laptop, got \"x\"";
    assertOneLine(2, names, "preflight", "cartpole_swingup", "--profile", "x");
    String modes = "--modes' (MODE): expected one of host, eager, graph, got \"x\"";
    assertOneLine(2, modes, "bench", "train", "cartpole_swingup", "--modes", "host,x");
    String real = "--warm-up': expected a number, got \"x\"";
    assertOneLine(2, real, "trace", "summary", path("none"), "--warm-up", "x");
  }

  @Test
  void compareSaysWhatIsWorse() throws IOException {
    Path a = Files.writeString(folder.resolve("a.json"), "{\"medians\": {\"x_us\": 10}}");
    Path b = Files.writeString(folder.resolve("b.json"), "{\"medians\": {\"x_us\": 12}}");
    assertEquals(4, run("compare", a.toString(), b.toString()));
    assertTrue(out.contains("\nworse: x_us\n"), out);
    assertEquals(0, run("compare", a.toString(), b.toString(), "--max-regression", "0.2"));
    assertTrue(out.contains("\nnothing is worse\n"), out);
    assertEquals(4, run("compare", a.toString(), b.toString(), "--json"));
    JsonNode result = Json.parse(out);
    assertEquals("worse", result.path("verdict").asString());
    assertEquals("worse", result.path("metrics").get(0).path("verdict").asString());
    assertEquals(1.2, result.path("metrics").get(0).path("ratio").asDouble());
    Files.writeString(b, "{\"medians\": {\"x_us\": 12}, \"envs\": 3}");
    assertEquals(3, run("compare", a.toString(), b.toString(), "--json"));
    assertEquals("envs", Json.parse(out).path("refusals").get(0).path("key").asString());
    assertOneLine(2, "no such file", "compare", a.toString(), path("none"));
    assertOneLine(
        2, "--max-regression -1.0: expected", "compare", "a", "b", "--max-regression", "-1");
    Files.write(b, new byte[] {'{', (byte) 0xff});
    assertOneLine(2, "b.json: it is not UTF-8", "compare", a.toString(), b.toString());
  }

  @Test
  void runsAreCompared() throws IOException {
    train("a");
    train("b");
    train("c", "-s", "replay.ingress_depth=3");
    String tolerant = "--max-regression=1e9";
    assertEquals(0, run("compare", path("a"), path("b"), tolerant), () -> out + err);
    assertEquals(3, run("compare", path("a"), path("c"), tolerant), () -> out + err);
    assertTrue(out.contains("replay.ingress_depth  2  3"), out);
    Path csv = folder.resolve("b/metrics.csv");
    List<String> lines = Files.readAllLines(csv);
    lines.remove(1);
    Files.write(csv, lines);
    assertOneLine(2, csv + ": ", "compare", path("a"), path("b"), tolerant);
    assertTrue(err.contains(": it is not what the run left, which its manifest lists"), err);
  }

  @Test
  void aTraceIsSummarised() throws IOException {
    String event = "{\"ph\":\"X\",\"name\":\"%s\",\"ts\":%d,\"dur\":5,\"pid\":1,\"tid\":1},";
    StringBuilder text = new StringBuilder("{\"traceEvents\":[");
    for (int i = 0; i < 3; i++) {
      text.append(event.formatted("learner/update_window", 100 * i));
      text.append(event.formatted("replay/add", 100 * i + 50));
    }
    Path file = Files.writeString(folder.resolve("trace.json"), text);
    assertEquals(0, run("trace", "summary", file.toString()));
    assertTrue(out.contains("(median of 2 ticks)\nincomplete: the file breaks off"), out);
    assertEquals(0, run("trace", "summary", file.toString(), "--json"));
    JsonNode result = Json.parse(out);
    assertFalse(result.path("complete").asBoolean());
    assertEquals(0.0, result.path("spans").get(1).path("inside_share").asDouble());
    assertEquals(5.0, result.path("exposed").get(0).path("exposed_us_per_tick").asDouble());
    assertOneLine(2, "no such file", "trace", "summary", path("none"));
    String inRun = "is a folder; a run with log.trace: true leaves its trace in " + file;
    assertOneLine(2, folder + ": " + inRun, "trace", "summary", folder.toString());
    assertOneLine(
        2,
        "--warm-up -1.0: expected at least 0",
        "trace",
        "summary",
        path("none"),
        "--warm-up",
        "-1");
  }

  @Test
  void aTableAlignsNumbersToTheRight() {
    Table table = new Table("name", "bytes", "share").row("a", 1234567, 0.5).row("bb", 7, null);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    table.print(new PrintStream(bytes, true, StandardCharsets.UTF_8));
    assertEquals(
        "name      bytes  share\na     1,234,567  0.500\nbb            7      -\n",
        bytes.toString(StandardCharsets.UTF_8));
    assertEquals(
        "[{\"name\":\"a\",\"bytes\":1234567,\"share\":0.5},"
            + "{\"name\":\"bb\",\"bytes\":7,\"share\":null}]",
        Json.write(table.json()));
  }
}

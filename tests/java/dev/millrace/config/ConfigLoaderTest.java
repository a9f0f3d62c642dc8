package dev.millrace.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.config.ConfigLoader.Gpu;
import dev.millrace.config.ConfigLoader.Resolved;
import dev.millrace.config.RunConfig.Profile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ConfigLoaderTest {
  private static final Gpu NONE = new Gpu(false, "no GPU");

  @TempDir Path folder;

  private static Resolved load(String name, String... overrides) {
    return ConfigLoader.load(name, List.of(overrides), () -> NONE);
  }

  private static String error(String name, String... overrides) {
    String message = assertThrows(ConfigException.class, () -> load(name, overrides)).getMessage();
    assertEquals(1, message.lines().count(), message);
    return message;
  }

  private String file(String text) throws Exception {
    return Files.writeString(folder.resolve("mine.yaml"), text).toString();
  }

  @Test
  void autoIsLaptopExactlyWithoutGpu() {
    Resolved laptop = load("g1_walk_flat");
    assertEquals(Profile.LAPTOP, laptop.config().profile());
    assertEquals(Profile.AUTO, laptop.requested());
    assertEquals(128, laptop.config().env().numEnvs());
    Resolved full =
        ConfigLoader.load("g1_walk_flat", List.of(), () -> new Gpu(true, "cuda is available"));
    assertEquals(Profile.FULL, full.config().profile());
    assertEquals(2048, full.config().env().numEnvs());
    assertEquals(8192, full.config().learner().batch());
    assertEquals("cuda is available", full.profileReason());
  }

  @Test
  void everyBuiltInResolvesInEveryProfileAndRoundTrips() throws Exception {
    for (String name : ConfigLoader.BUILT_IN) {
      for (String profile : List.of("full", "laptop")) {
        RunConfig config = load(name, "profile=" + profile).config();
        Path file = folder.resolve(name + ".yaml");
        Files.writeString(file, YamlWriter.write(config));
        assertEquals(config, ConfigLoader.reload(file, List.of()), name);
        assertEquals(config, load(file.toString()).config(), name);
      }
    }
  }

  @Test
  void laterLayersWin() throws Exception {
    String mine =
        file(
            """
            task: g1_walk_flat
            learner: {batch: 1000}
            rewards: {alive: {weight: 3}}
            profiles: {laptop: {learner: {tau: 0.5}}}
            """);
    RunConfig config = load(mine, "learner.gamma=0.9", "rewards.alive.params.x=2").config();
    assertEquals(1000, config.learner().batch());
    assertEquals(0.5, config.learner().tau());
    assertEquals(0.9, config.learner().gamma());
    assertEquals(3, config.learner().updatesPerTick());
    assertEquals(new RunConfig.Reward(3, Map.of("x", 2.0), null), config.rewards().get("alive"));
    assertEquals(2.0, config.rewards().get("tracking_lin_vel").weight());
  }

  @Test
  void numbersAreStrict() throws Exception {
    assertEquals(1e-4, load("g1_walk_flat", "learner.actor_lr=1e-4").config().learner().actorLr());
    String mine = file("task: g1_walk_flat\nlearner: {actor_lr: 1e-4, critic_lr: 2}\n");
    assertEquals(1e-4, load(mine).config().learner().actorLr());
    assertEquals(2, load(mine).config().learner().criticLr());
    assertEquals(
        "-s learner.actor_lr=1e-4x: learner.actor_lr: expected a finite number, got \"1e-4x\"",
        error("g1_walk_flat", "learner.actor_lr=1e-4x"));
    String bad = file("task: g1_walk_flat\nlearner:\n  actor_lr: 1e-4x\n");
    assertEquals(
        bad + ":3:13: learner.actor_lr: expected a finite number, got \"1e-4x\"", error(bad));
    for (String value : List.of(".inf", "-.inf", ".nan", "1e999", "", "[1]", "true")) {
      assertTrue(error("g1_walk_flat", "learner.tau=" + value).contains("learner.tau"), value);
    }
    for (String value : List.of("abc", "1.5", "1e3", "9999999999", "0", "-1", "true", "{a: 1}")) {
      assertTrue(error("g1_walk_flat", "learner.batch=" + value).contains("learner.batch"), value);
    }
    assertTrue(
        error("g1_walk_flat", "learner.batch=abc")
            .endsWith("learner.batch: expected an integer, got \"abc\""));
    assertEquals(255, load("g1_walk_flat", "learner.batch=0xFF").config().learner().batch());
  }

  @Test
  void unknownKeysNameThePlaceThePathAndTheNearest() throws Exception {
    String mine = file("task: g1_walk_flat\nlearner:\n  bach: 7\n");
    assertEquals(mine + ":3:9: unknown key learner.bach; did you mean \"batch\"?", error(mine));
    assertEquals(
        "-s repaly.capacity_rows=1: unknown key repaly; did you mean \"replay\"?",
        error("g1_walk_flat", "repaly.capacity_rows=1"));
    assertTrue(error("g1_walk_flat", "env.zzzzzzzz=1").contains("; known: num_envs, threads"));
    assertTrue(error(file("task: g1_walk_falt\n")).contains("did you mean \"g1_walk_flat\"?"));
    assertTrue(error("g1_walk_falt").contains("did you mean \"g1_walk_flat\"?"));
    assertTrue(error(file("seed: 1\n")).endsWith("task is missing"));
    assertTrue(error(file("task: g1_walk_flat\nalgo: ppo\n")).contains("has no \"ppo\""));
    assertTrue(
        error(file("task: g1_walk_flat\nprofiles: {latpop: {}}\n"))
            .contains("profiles.latpop; did you mean \"laptop\"?"));
  }

  @Test
  void aMistakeInAProfileThatIsNotUsedIsFound() throws Exception {
    for (String profile : List.of("full", "laptop")) {
      String mine = file("task: g1_walk_flat\nprofiles: {" + profile + ": {env: {num_env: 3}}}\n");
      for (String used : List.of("full", "laptop")) {
        String message = error(mine, "profile=" + used);
        assertTrue(message.startsWith(mine + ":2:"), message);
        assertTrue(
            message.endsWith("unknown key env.num_env; did you mean \"num_envs\"?"), message);
      }
    }
  }

  @Test
  void builtInsAreListedOnce() throws Exception {
    String message = error(file("task: zzzzzzzzzzzzzzz\n"));
    assertTrue(
        message.endsWith("; known: cartpole_swingup, g1_walk_flat, g1_motion_tracking"), message);
  }

  @Test
  void aTextHasNoNul() throws Exception {
    String mine = file("task: g1_walk_flat\nenv: {model_file: \"a\\0b\"}\n");
    assertEquals(
        mine + ":2:19: env.model_file: expected a text without NUL, got \"a\\0b\"", error(mine));
    assertEquals(
        "-s selection_cache=\"\\0\": selection_cache: expected a text without NUL, got \"\\0\"",
        error("g1_walk_flat", "selection_cache=\"\\0\""));
  }

  @Test
  void wrongTypesSayWhatIsExpected() throws Exception {
    assertTrue(
        error("g1_walk_flat", "device=gpu")
            .endsWith("expected one of auto, cpu, cuda, metal, got \"gpu\""));
    assertTrue(error("g1_walk_flat", "env.noise=1").endsWith("expected true or false, got 1"));
    assertTrue(error("g1_walk_flat", "profile=big").endsWith("auto, full, laptop, got \"big\""));
    assertTrue(error("g1_walk_flat", "learner=3").contains("expected a group of keys, got 3"));
    assertTrue(error("g1_walk_flat", "seed=-1").contains("at least 0, got -1"));
    assertTrue(error("g1_walk_flat", "learner").contains("expected key.path=value"));
    assertTrue(error("g1_walk_flat", "a..b=1").contains("is no key path"));
    assertTrue(error("g1_walk_flat", "env.threads=none").contains("an integer or auto"));
    assertEquals(3, load("g1_walk_flat", "env.threads=3").config().env().threads().count());
    assertEquals(Threads.AUTO, load("g1_walk_flat", "env.threads=auto").config().env().threads());
  }

  @Test
  void depthZeroIsLeftToThePreflight() {
    assertEquals(
        0, load("g1_walk_flat", "replay.ingress_depth=0").config().replay().ingressDepth());
  }

  @Test
  void aModelStandsRelativeToTheFileThatNamesIt() throws Exception {
    String mine = file("task: g1_walk_flat\nenv: {model_file: sub/robot.xml}\n");
    assertEquals(folder.resolve("sub/robot.xml").toString(), load(mine).config().env().modelFile());
    String here = load(mine, "env.model_file=robot.xml").config().env().modelFile();
    assertEquals(Path.of("robot.xml").toAbsolutePath().toString(), here);
  }

  @Test
  void aMotionStandsRelativeToTheFileThatNamesIt() throws Exception {
    String mine =
        file("task: g1_motion_tracking\nenv: {motion_file: dance.npz, motion_start: clip_start}\n");
    RunConfig.Env env = load(mine).config().env();
    assertEquals(folder.resolve("dance.npz").toString(), env.motionFile());
    assertEquals(RunConfig.MotionStart.CLIP_START, env.motionStart());
    assertNull(load("g1_motion_tracking_sac").config().env().motionFile());
    assertNull(load("g1_walk_flat").config().env().motionStart(), "a task without a motion");
    assertTrue(
        error("g1_motion_tracking_sac", "env.motion_start=often")
            .contains("one of start, clip_start, uniform, adaptive, mixed"));
  }

  @Test
  void aFileTakesTheConfigurationOfItsTaskAndAlgorithm() throws Exception {
    RunConfig flash = load(file("task: g1_walk_flat\nalgo: flashsac\n")).config();
    assertEquals(load("g1_walk_flat_flashsac").config(), flash);
    assertEquals(RunConfig.RewardScaling.EPISODE, flash.learner().rewardScaling());
    assertEquals(16, flash.learner().noiseRepeatMax());
    RunConfig fast = load(file("task: g1_walk_flat\n")).config();
    assertEquals("fastsac", fast.algo());
    assertEquals(RunConfig.RewardScaling.OFF, fast.learner().rewardScaling());
    assertEquals(1, fast.learner().noiseRepeatMax());
    assertEquals("flashsac", load(file("task: g1_motion_tracking\n")).config().algo());
    assertEquals(
        "fastsac", load(file("task: g1_motion_tracking\nalgo: fastsac\n")).config().algo());
    assertTrue(
        error("g1_walk_flat_flashsac", "learner.reward_scaling=on")
            .contains("one of off, episode, flashsac"));
  }

  @Test
  void aResumedRunMayChangeItsLimitsOnly() throws Exception {
    Path file = folder.resolve("config.yaml");
    Files.writeString(file, YamlWriter.write(load("cartpole_swingup").config()));
    RunConfig config = ConfigLoader.reload(file, List.of("run.max_ticks=7"));
    assertEquals(7, config.run().maxTicks());
    Resolved again = ConfigLoader.resolveAgain(file, List.of("run.max_ticks=7"));
    assertEquals(file + ":1:7: task: x", again.placed("task: x"));
    assertEquals("-s run.max_ticks=7: run.max_ticks: x", again.placed("run.max_ticks: x"));
    assertEquals("as in config.yaml", again.profileReason());
    assertThrows(
        ConfigException.class, () -> ConfigLoader.reload(file, List.of("learner.batch=8")));
    Files.writeString(file, "task: x\n");
    ConfigException e =
        assertThrows(ConfigException.class, () -> ConfigLoader.reload(file, List.of()));
    assertTrue(e.getMessage().startsWith(file + ": algo, profile, seed,"), e.getMessage());
    assertTrue(e.getMessage().endsWith(", log, checkpoint are missing"), e.getMessage());
    for (List<String> overrides : List.of(List.<String>of(), List.of("run.max_ticks=7"))) {
      Files.writeString(file, "");
      e = assertThrows(ConfigException.class, () -> ConfigLoader.reload(file, overrides));
      assertTrue(e.getMessage().contains(file + ": task, algo, profile,"), e.getMessage());
    }
  }

  @Test
  void rewardTermsMustExist() {
    assertEquals(
        "-s rewards.alve.weight=1: rewards.alve: no such reward term; did you mean \"alive\"?",
        termError("rewards.alve.weight=1"));
    assertEquals(
        "-s rewards.alive.params.x=1: rewards.alive.params.x: no such parameter; it has none",
        termError("rewards.alive.params.x=1"));
    assertEquals(
        """
        2 mistakes in the configuration:
          -s rewards.alive.params.x=1: rewards.alive.params.x: no such parameter; it has none
          -s rewards.alve.weight=1: rewards.alve: no such reward term; did you mean "alive"?""",
        termError("rewards.alve.weight=1", "rewards.alive.params.x=1"));
  }

  @Test
  void allMistakesAreSaidInTheOrderOfTheFile() throws Exception {
    String mine =
        file(
            """
            task: g1_walk_flat
            replay: {ingress_dept: 3}
            seed: x
            learner:
              tau: 7
              bach: 1
            rewards: {alive: {weight: much}, m: {expr: cmd.x}}
            profiles: {full: {env: {noise: 3}}, laptop: {env: {events: 4}}}
            """);
    List<String> overrides = List.of("log.trace=2", "device=gpu");
    String message =
        assertThrows(ConfigException.class, () -> ConfigLoader.load(mine, overrides, () -> NONE))
            .getMessage();
    assertEquals(
        """
        10 mistakes in the configuration:
          FILE:2:24: unknown key replay.ingress_dept; did you mean "ingress_depth"?
          FILE:3:7: seed: expected an integer, got "x"
          FILE:5:8: learner.tau: expected at most 1, got 7
          FILE:6:9: unknown key learner.bach; did you mean "batch"?
          FILE:7:27: rewards.alive.weight: expected a finite number, got "much"
          FILE:7:37: rewards.m.weight is missing
          FILE:8:32: env.noise: expected true or false, got 3
          FILE:8:60: env.events: expected true or false, got 4
          -s device=gpu: device: expected one of auto, cpu, cuda, metal, got "gpu"
          -s log.trace=2: log.trace: expected true or false, got 2"""
            .replace("FILE", mine),
        message);
  }

  private static String all(String name, String... overrides) {
    return assertThrows(ConfigException.class, () -> load(name, overrides)).getMessage();
  }

  @Test
  void aWrongTaskOrAlgorithmHidesNoOtherMistake() throws Exception {
    String rest =
        """
        algo: fastsac
        profile: big
        rewards: {alive: {params: {x: 1}}, upright: {params: {}}}
        learner: {tau: 7}
        profiles: {latpop: {}, full: 3}
        """;
    String known =
        """
          FILE:3:10: profile: expected one of auto, full, laptop, got "big"
          FILE:5:16: learner.tau: expected at most 1, got 7
          FILE:6:20: unknown key profiles.latpop; did you mean "laptop"?
          FILE:6:30: profiles.full: expected a group of keys, got 3"""
            .replaceAll("(?m)^", "  ");
    String mine = file("task: g1_walk_falt\n" + rest);
    assertEquals(
        "5 mistakes in the configuration:\n"
            + "  FILE:1:7: task: unknown task \"g1_walk_falt\"; did you mean \"g1_walk_flat\"?\n"
            + known,
        all(mine).replace(mine, "FILE"));
    mine = file("# no task\n" + rest);
    assertEquals(
        "5 mistakes in the configuration:\n" + known + "\n  FILE: task is missing",
        all(mine).replace(mine, "FILE"));
    mine = file("task: [1]\n" + rest.replace("fastsac", "~"));
    assertEquals(
        "6 mistakes in the configuration:\n"
            + "  FILE:1:7: task: expected a single value, got a list\n"
            + "  FILE:2:7: algo: expected a text, got nothing\n"
            + known,
        all(mine).replace(mine, "FILE"));
    mine = file("task: cartpole_swingup\nalgo: flashsack\nlearner: {tau: 7}\n");
    assertEquals(
        """
        2 mistakes in the configuration:
          FILE:2:7: algo: task cartpole_swingup has no "flashsack"; did you mean "flashsac"?
          FILE:3:16: learner.tau: expected at most 1, got 7""",
        all(mine).replace(mine, "FILE"));
  }

  @Test
  void aDuplicateKeyHidesNoOtherMistake() throws Exception {
    String mine =
        file(
            """
            task: g1_walk_flat
            learner: {tau: 7, batch: 8, batch: 9}
            seed: 1
            seed: 2
            log: {trace: 3}
            """);
    assertEquals(
        """
        4 mistakes in the configuration:
          FILE:2:16: learner.tau: expected at most 1, got 7
          FILE:2:29: duplicate key "batch"
          FILE:4:1: duplicate key "seed"
          FILE:5:14: log.trace: expected true or false, got 3""",
        all(mine, "learner.gamma=0.5").replace(mine, "FILE"));
  }

  @Test
  void severalMessagesAreEachPlaced() throws Exception {
    String mine =
        file(
            """
            task: g1_walk_flat
            rewards:
              a: {weight: 2.0, expr: "1 +"}
            """);
    Resolved resolved = load(mine, "rewards.b={weight: 1, expr: x}");
    assertEquals(
        """
        2 mistakes in the configuration:
          FILE:3:26: rewards.a.expr: column 4: x
          -s rewards.b={weight: 1, expr: x}: rewards.b.expr: column 1: y"""
            .replace("FILE", mine),
        resolved.placed("rewards.b.expr: column 1: y\nrewards.a.expr: column 4: x"));
  }

  @Test
  void anExpressionIsARewardWithANameOfItsOwn() throws Exception {
    String expr = "exp(-norm2(cmd.xy - base_lin_vel.xy) / 0.25)";
    String mine =
        file(
            """
            task: g1_walk_flat
            rewards:
              my_tracking: {weight: 2.0, expr: "%s"}
            """
                .formatted(expr));
    Resolved resolved = load(mine, "rewards.height.weight=-1", "rewards.height.expr=root_pos.z");
    RunConfig config = resolved.config();
    assertEquals(new RunConfig.Reward(2, Map.of(), expr), config.rewards().get("my_tracking"));
    assertEquals(new RunConfig.Reward(-1, Map.of(), "root_pos.z"), config.rewards().get("height"));

    String shown = YamlWriter.write(config);
    assertTrue(shown.contains("    expr: \"" + expr + "\"\n"), shown);
    assertEquals(2, shown.split("expr:", -1).length - 1, "terms show no expr");
    Path again = Files.writeString(folder.resolve("again.yaml"), shown);
    assertEquals(config, ConfigLoader.reload(again, List.of()));

    assertEquals(
        mine + ":3:36: rewards.my_tracking.expr: column 3: x",
        resolved.placed("rewards.my_tracking.expr: column 3: x"));
    assertEquals(
        "-s rewards.height.expr=root_pos.z: rewards.height.expr: column 3: x",
        resolved.placed("rewards.height.expr: column 3: x"));
    assertEquals(
        mine + ":3:16: rewards.my_tracking.params.scale: x",
        resolved.placed("rewards.my_tracking.params.scale: x"));
    assertEquals("something: else", resolved.placed("something: else"));
  }

  @Test
  void anExpressionExcludesATermAndParameters() {
    TermCheck.check(load("g1_walk_flat", "rewards.m={weight: 1, expr: cmd.x}"), terms());
    assertEquals(
        "-s rewards.alive.expr=cmd.x: rewards.alive.expr: alive is a term; call the expression"
            + " something else",
        termError("rewards.alive.expr=cmd.x"));
    String params = "rewards.m={weight: 1, expr: cmd.x, params: {scale: 1}}";
    assertTrue(
        termError(params)
            .endsWith("rewards.m.params: an expression has none: write their values into it"));
    assertTrue(error("g1_walk_flat", "rewards.m.expr=1").endsWith("rewards.m.weight is missing"));
  }

  /** The rewards of a task as terms without parameters. */
  private static Map<String, List<String>> terms() {
    Map<String, List<String>> terms = new java.util.HashMap<>();
    load("g1_walk_flat").config().rewards().keySet().forEach(name -> terms.put(name, List.of()));
    return terms;
  }

  private static String termError(String... overrides) {
    Resolved resolved = load("g1_walk_flat", overrides);
    return assertThrows(ConfigException.class, () -> TermCheck.check(resolved, terms()))
        .getMessage();
  }

  private static List<String> withoutEffect(String name, String... overrides) {
    return load(name, overrides).noEffect().stream().map(NoEffect::key).toList();
  }

  @Test
  void keysThatWereSetInVainAreNamed() throws Exception {
    for (String name : ConfigLoader.BUILT_IN) {
      assertEquals(List.of(), withoutEffect(name), name);
      String copy = file(YamlWriter.write(load(name, "profile=laptop").config()));
      assertEquals(List.of(), withoutEffect(copy), name);
    }
    String name = "cartpole_swingup";
    String[] critic = {"learner.atoms=7", "learner.v_min=-3", "learner.v_max=3"};
    assertEquals(List.of(), withoutEffect(name, critic));
    List<String> scalar = new java.util.ArrayList<>(List.of(critic));
    scalar.add("learner.critic=scalar");
    assertEquals(
        List.of(
            new NoEffect("learner.atoms", "7 has no effect with learner.critic: scalar"),
            new NoEffect("learner.v_min", "-3 has no effect with learner.critic: scalar"),
            new NoEffect("learner.v_max", "3 has no effect with learner.critic: scalar")),
        load(name, scalar.toArray(String[]::new)).noEffect());
    scalar.add("learner.reward_scaling=episode");
    assertEquals(List.of("learner.atoms"), withoutEffect(name, scalar.toArray(String[]::new)));
    String lead = "collector.max_lead_ticks=9";
    assertEquals(
        List.of("collector.max_lead_ticks"), withoutEffect(name, lead, "collector.sync=true"));
    assertEquals(List.of(), withoutEffect(name, lead, "collector.sync=false"));
    assertEquals(
        List.of("learner.lr_final_share"),
        withoutEffect(name, "learner.lr_decay_steps=0", "learner.lr_final_share=0.125"));
    String off = "curriculum.penalty.enabled=false";
    assertEquals(
        List.of("curriculum.penalty.rate"),
        withoutEffect("g1_walk_flat", off, "curriculum.penalty.rate=0.125"));
  }

  @Test
  void theNearestNameIsFoundByEditDistance() {
    assertEquals(0, Nearest.distance("abc", "abc"));
    assertEquals(1, Nearest.distance("abc", "acb"));
    assertEquals(3, Nearest.distance("kitten", "sitting"));
    assertEquals("batch", Nearest.of("batc", List.of("tau", "batch")).orElseThrow());
    assertFalse(Nearest.of("zzzz", List.of("tau", "batch")).isPresent());
    for (String name : List.of("x", "lr", "abc", "tau", "sigma")) {
      List<String> others = List.of("y", "xy", "log", "run", "env", "task", "scale");
      assertFalse(Nearest.of(name, others).isPresent(), name);
    }
    assertEquals("log", Nearest.of("lgo", List.of("run", "log")).orElseThrow());
  }
}

package dev.millrace.cli;

import dev.millrace.config.RunConfig.Profile;
import dev.millrace.run.BadInputException;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** CONFIG and everything that changes it, for all commands that take one. */
final class ConfigOptions {
  @Parameters(
      paramLabel = "CONFIG",
      description =
          "A YAML file or a built-in configuration: cartpole_swingup, g1_walk_flat, the same with"
              + " _flashsac, g1_motion_tracking or g1_motion_tracking_sac.")
  private String config;

  @Option(
      names = {"-s", "--set"},
      paramLabel = "KEY=VALUE",
      description =
          "Override one key, such as learner.batch=1024. Repeatable; the last one counts.")
  private List<String> overrides = new ArrayList<>();

  @Option(
      names = "--seed",
      paramLabel = "N",
      description = "Same as -s seed=N; beside another one of these it is refused.")
  private Long seed;

  @Option(
      names = "--profile",
      paramLabel = "NAME",
      description =
          "auto, full or laptop; same as -s profile=NAME, and refused beside another one.")
  private Profile profile;

  String config() {
    return config;
  }

  List<String> overrides() {
    List<String> all = new ArrayList<>(overrides);
    if (seed != null) {
      refuseOther("--seed " + seed, "seed=" + seed, overrides);
      all.add("seed=" + seed);
    }
    if (profile != null) {
      refuseOther("--profile " + profile, "profile=" + profile, overrides);
      all.add("profile=" + profile);
    }
    return all;
  }

  /** Where an option and an override say two things, neither wins, whichever stands last. */
  static void refuseOther(String option, String same, List<String> overrides) {
    String key = same.substring(0, same.indexOf('=') + 1);
    List<String> others = overrides.stream().filter(each -> each.startsWith(key)).toList();
    String last = others.isEmpty() ? same : others.get(others.size() - 1); // the one that counts
    if (!last.equals(same)) {
      throw new BadInputException(
          option + ": -s " + last + " says otherwise; leave one of the two away");
    }
  }
}

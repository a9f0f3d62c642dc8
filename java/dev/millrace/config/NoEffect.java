package dev.millrace.config;

import dev.millrace.config.RunConfig.Critic;
import dev.millrace.config.RunConfig.Learner;
import dev.millrace.config.RunConfig.RewardScaling;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A key that was set, and that another key leaves without effect. */
public record NoEffect(String key, String reason) {
  /** Of the keys that differ from the built-in configuration: a copy of one sets every key. */
  static List<NoEffect> in(RunConfig config, RunConfig builtIn) {
    List<NoEffect> found = new ArrayList<>();
    Learner learner = config.learner();
    if (learner.critic() == Critic.SCALAR) {
      add(found, "learner", learner, builtIn.learner(), "atoms", "critic: scalar");
      if (learner.rewardScaling() == RewardScaling.OFF) { // which takes them for a scale, too
        add(found, "learner", learner, builtIn.learner(), "v_min", "critic: scalar");
        add(found, "learner", learner, builtIn.learner(), "v_max", "critic: scalar");
      }
    }
    if (learner.lrDecaySteps() == 0) {
      add(found, "learner", learner, builtIn.learner(), "lr_final_share", "lr_decay_steps: 0");
    }
    RunConfig.Collector collector = config.collector();
    if (collector.sync()) {
      add(found, "collector", collector, builtIn.collector(), "max_lead_ticks", "sync: true");
    }
    RunConfig.Penalty penalty = config.curriculum().penalty();
    if (!penalty.enabled()) {
      for (String key : RecordBinder.keys(RunConfig.Penalty.class)) {
        RunConfig.Penalty standard = builtIn.curriculum().penalty();
        if (!key.equals("enabled")) {
          add(found, "curriculum.penalty", penalty, standard, key, "enabled: false");
        }
      }
    }
    return found;
  }

  private static void add(
      List<NoEffect> found, String group, Record set, Record standard, String key, String cause) {
    Map<String, Object> values = RecordBinder.tree(set);
    if (!values.get(key).equals(RecordBinder.tree(standard).get(key))) {
      found.add(
          new NoEffect(
              group + "." + key,
              YamlWriter.text(values.get(key)) + " has no effect with " + group + "." + cause));
    }
  }
}

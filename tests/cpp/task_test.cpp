// Tests for task.h: configuration, its errors, descriptions.
#include "task.h"

#include <gtest/gtest.h>

#include "resources.h"
#include "status.h"
#include "task_fixture.h"

namespace millrace {
namespace {

using nlohmann::json;

json walk_flat(json more = json::object()) {
  more["task"] = "g1_walk_flat";
  return more;
}

std::string error_of(const json& config) {
  try {
    make_task(config, g1_model());
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kInvalid);
    return failure.what();
  }
  return "no error";
}

float weight_of(const Task& task, const std::string& name) {
  for (size_t k = 0; k < task.reward_names.size(); ++k) {
    if (task.reward_names[k] == name) return task.params.reward[k].weight;
  }
  return 0;
}

TEST(Task, WeightsAndParametersAreOverridden) {
  const Task task = make_task(walk_flat({{"rewards",
                                          {{"alive", {{"weight", 1.5}}},
                                           {"feet_phase", {{"params", {{"scale", 0.008}}}}},
                                           {"pose", {{"params", {{"hip_roll", 2.0}}}}},
                                           {"penalty_feet_ori", {{"weight", 0}}}}}}),
                              g1_model());
  EXPECT_EQ(weight_of(task, "alive"), 1.5f);
  EXPECT_EQ(weight_of(task, "pose"), -0.5f);
  EXPECT_EQ(weight_of(task, "penalty_feet_ori"), 0.0f);
  EXPECT_EQ(task.params.reward[task.params.reward_count - 2].params.value[0], 0.008f);
  EXPECT_EQ(task.params.constants.pose_weight[1], 2.0f);
  EXPECT_EQ(task.params.constants.pose_weight[7], 2.0f);
  EXPECT_EQ(task.params.constants.pose_weight[2], 5.0f);
}

TEST(Task, BuiltInWeightsAreThePublishedOnes) {
  const Task task = make_task(walk_flat(), g1_model());
  const std::pair<const char*, float> expected[] = {
      {"tracking_lin_vel", 2},      {"tracking_ang_vel", 1.5f},  {"penalty_ang_vel_xy", -1},
      {"penalty_orientation", -10}, {"penalty_action_rate", -4}, {"pose", -0.5f},
      {"penalty_feet_ori", -20},    {"feet_phase", 5},           {"alive", 10}};
  for (const auto& [name, weight] : expected) EXPECT_EQ(weight_of(task, name), weight) << name;
  EXPECT_EQ(task.reward_names.size(), 9u);
}

TEST(Task, ErrorsNameTheKeyTheLimitsAndTheNearestName) {
  EXPECT_EQ(error_of({{"task", "g1_walk_flot"}}),
            "task: unknown task \"g1_walk_flot\"; did you mean \"g1_walk_flat\"? Allowed: "
            "cartpole_swingup, g1_walk_flat, g1_motion_tracking");
  EXPECT_NE(error_of(walk_flat({{"rewards", {{"trackin_lin_vel", json::object()}}}}))
                .find("did you mean \"tracking_lin_vel\""),
            std::string::npos);
  EXPECT_EQ(error_of(walk_flat({{"rewards", {{"feet_phase", {{"params", {{"sigma", 1}}}}}}}})),
            "rewards.feet_phase.params: unknown parameter \"sigma\"; allowed: "
            "scale, swing_height, gate_speed");
  EXPECT_EQ(error_of(walk_flat({{"rewards", {{"feet_phase", {{"params", {{"scale", 0}}}}}}}})),
            "rewards.feet_phase.params.scale: 0.0 is outside of [1e-05, 10.0]");
  EXPECT_EQ(error_of(walk_flat({{"rewards", {{"alive", {{"weight", "big"}}}}}})),
            "rewards.alive.weight: expected a number, got \"big\"");
  EXPECT_EQ(error_of(walk_flat({{"rewards", {{"alive", {{"wieght", 1}}}}}})),
            "rewards.alive: unknown key \"wieght\"; did you mean \"weight\"? Allowed: params, "
            "weight");
  EXPECT_EQ(error_of(walk_flat({{"curriculum", {{"penalty", {{"rates", 1}}}}}})),
            "curriculum.penalty: unknown parameter \"rates\"; did you mean \"rate\"? Allowed: "
            "start, min, max, lower_length, upper_length, rate, window");
  EXPECT_EQ(error_of(walk_flat({{"curriculum", {{"penalty", {{"min", 2}}}}}})),
            "curriculum.penalty.min: the low bound 2.0 is above 1.0");
  EXPECT_EQ(error_of(walk_flat({{"env", {{"events", {{"pushes", true}}}}}})),
            "env.events: unknown event \"pushes\"; did you mean \"push\"? Allowed: push, gains");
  EXPECT_EQ(error_of(walk_flat({{"env", {{"noise", "on"}}}})),
            "env.noise: expected a number, got \"on\"");
  EXPECT_EQ(error_of(walk_flat({{"env", {{"motion_file", "dance.npz"}}}})),
            "env.motion_file: this task follows no motion");
  const json tracking = {{"task", "g1_motion_tracking"}, {"resources_dir", resources()}};
  const auto with = [&](const char* key, const json& value) {
    json config = tracking;
    config["env"][key] = value;
    return error_of(config);
  };
  EXPECT_EQ(with("motion_start", "adaptiv"),
            "env.motion_start: unknown mode \"adaptiv\"; did you mean \"adaptive\"? Allowed: "
            "start, clip_start, uniform, adaptive, mixed");
  EXPECT_EQ(with("motion_file", 3), "env.motion_file: expected a text, got 3");
  EXPECT_EQ(
      with("motion_file", "/nowhere/dance.npz"),
      "env.motion_file: motion file '/nowhere/dance.npz': is not there or is no regular file; "
      "allowed: a .npz, a .csv, a folder of them, or null for the built-in motion");
}

TEST(Task, ExpressionsAreRewardsWithNamesOfTheirOwn) {
  const auto config = [](const char* name, json settings) {
    return walk_flat({{"rewards", {{name, std::move(settings)}}}});
  };
  const Task task = make_task(config("mine", {{"weight", -2}, {"expr", "cmd.x"}}), g1_model());
  EXPECT_EQ(weight_of(task, "mine"), -2.0f);
  EXPECT_EQ(task.reward_names.back(), "mine");
  EXPECT_EQ(task.params.expressions.count, 1);
  EXPECT_EQ(error_of(config("mine", {{"weight", 0}, {"expr", "base_lin_vle.x"}}))
                .rfind("rewards.mine.expr: column 1: unknown name \"base_lin_vle\"; did you mean "
                       "\"base_lin_vel\"? Allowed: base_lin_vel, ",
                       0),
            0u);
  const json wrong = {{"mine", {{"expr", "1 +"}}}, {"yours", {{"expr", "cmd.q"}}}};
  const std::string one = error_of(config("mine", wrong["mine"]));
  const std::string other = error_of(config("yours", wrong["yours"]));
  EXPECT_EQ(error_of(walk_flat({{"rewards", wrong}})), one + "\n" + other);
  EXPECT_EQ(error_of(config("alive", {{"expr", "1"}})),
            "rewards.alive.expr: alive is a term of its own; call the expression something else");
  EXPECT_EQ(error_of(config("upright", {{"expr", "1"}})),
            "rewards.upright.expr: upright is a term of its own; call the expression something "
            "else");
  EXPECT_EQ(error_of(config("mine", {{"expr", 1}})), "rewards.mine.expr: expected a text, got 1");
  EXPECT_EQ(error_of(config("mine", {{"expr", ""}})),
            "rewards.mine.expr: expected a text, got \"\"");
  EXPECT_EQ(error_of(config("mine", {{"expr", "1"}, {"params", {{"scale", 1}}}})),
            "rewards.mine.params: an expression has no parameters: write their values into it");
  EXPECT_EQ(error_of(config("mine", {{"expr", "1"}, {"wieght", 1}})),
            "rewards.mine: unknown key \"wieght\"; did you mean \"weight\"? Allowed: weight, expr");
  EXPECT_EQ(error_of(config("a,b", {{"expr", "1"}})),
            "rewards.a,b: a name has 1 to 64 letters, digits and _");
  json many = json::object();
  for (int i = 10; i < 26; ++i) {
    many["mine_" + std::to_string(i)] = {{"weight", 1}, {"expr", "1"}};
  }
  EXPECT_EQ(error_of(walk_flat({{"rewards", many}})),
            "rewards.mine_25: at most 24 rewards have a weight");
}

TEST(Task, EveryBuiltInConfigurationShapeIsAccepted) {
  const json config = {
      {"task", "cartpole_swingup"},
      {"env",
       {{"noise", true},
        {"events", true},
        {"model_file", nullptr},
        {"motion_file", nullptr},
        {"num_envs", 16}}},
      {"rewards", {{"upright", {{"weight", 50.0}}}}},
      {"curriculum", {{"penalty", {{"enabled", false}, {"start", 1.0}, {"window", 1000}}}}}};
  EXPECT_EQ(make_task(config, cartpole_model()).layout.width(), 2 * 5 + 1 + 3 + 2 * 5);
}

TEST(Task, SimSpecTakesTheUsersModel) {
  EXPECT_EQ(sim_spec_of(walk_flat(), "/res").model_path, "/res/models/g1.xml");
  const SimSpec sim = sim_spec_of(walk_flat({{"env", {{"model_file", "my/robot.xml"}}}}), "/res");
  EXPECT_EQ(sim.model_path, "my/robot.xml");
  EXPECT_EQ(sim.joint_names.size(), 29u);
}

TEST(Task, DescriptionsAgreeWithTheTasks) {
  const json tasks = describe_tasks();
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_EQ(tasks[0]["name"], "cartpole_swingup");
  EXPECT_EQ(tasks[0]["observation_dim"], 5);
  EXPECT_EQ(tasks[0]["action_dim"], 1);
  EXPECT_EQ(tasks[1]["observation_dim"], 98);
  EXPECT_EQ(tasks[1]["critic_dim"], 101);
  EXPECT_EQ(tasks[1]["rewards"][0]["params"]["scale"], .25);
  EXPECT_EQ(tasks[1]["observations"][2]["noise"], .01);
  EXPECT_EQ(tasks[1]["terminations"][2]["truncates"], true);
  EXPECT_EQ(tasks[1]["curriculum"][0]["params"]["upper_length"], 750);
  EXPECT_EQ(tasks[2]["observation_dim"], 160);
  EXPECT_EQ(tasks[2]["critic_dim"], 289);
  EXPECT_EQ(tasks[2]["events"][0]["params"]["yaw_rate"], .78);
}

TEST(Task, PlayCanBeClean) {
  const Task task =
      make_task(walk_flat({{"env", {{"noise", false}, {"events", false}}}}), g1_model());
  for (int k = 0; k < task.params.observation.count; ++k) {
    EXPECT_EQ(task.params.observation.slot[k].noise, 0.0f);
  }
  EXPECT_FALSE(task.params.push.enabled);
  EXPECT_FALSE(task.reset.randomise_gains);
}

}  // namespace
}  // namespace millrace

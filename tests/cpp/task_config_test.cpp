// Tests for task_config.h: what a configuration changes in a definition. Errors of every key are in
// task_test.cpp, where a whole task is made.
#include "task_config.h"

#include <gtest/gtest.h>

#include "status.h"

namespace millrace {
namespace {

using nlohmann::json;

json tracking(json more = json::object()) {
  more["task"] = "g1_motion_tracking";
  return more;
}

const TermUse& use_of(const std::vector<TermUse>& uses, const std::string& term) {
  for (const TermUse& use : uses) {
    if (use.term == term) return use;
  }
  throw Failure(Code::kBug, "no " + term);
}

TEST(TaskConfig, DefinitionsHaveTheirNames) {
  EXPECT_EQ(task_names(),
            (std::vector<std::string>{"cartpole_swingup", "g1_walk_flat", "g1_motion_tracking"}));
  for (const TaskDefinition& definition : definitions()) {
    EXPECT_EQ(&definition_of({{"task", definition.name}}), &definition);
  }
}

TEST(TaskConfig, EverySectionIsApplied) {
  const TaskDefinition task =
      configured(tracking({{"rewards", {{"joint_limit", {{"weight", -10.0}}}}},
                           {"terminations", {{"anchor_height", {{"params", {{"limit", .25}}}}}}},
                           {"commands", {{"motion", {{"params", {{"root_yaw", .4}}}}}}},
                           {"events", {{"push", {{"enabled", false}}}}},
                           {"curriculum", {{"frame_sampler", {{"rate", .01}}}}},
                           {"env", {{"noise", 0.5}}}}));
  EXPECT_EQ(use_of(task.rewards, "joint_limit").weight, -10.0);
  EXPECT_EQ(use_of(task.terminations, "anchor_height").parameters.at("limit"), .25);
  EXPECT_EQ(use_of(task.commands, "motion").parameters.at("root_yaw"), .4);
  EXPECT_FALSE(use_of(task.events, "push").enabled);
  EXPECT_TRUE(use_of(task.events, "gains").enabled);
  EXPECT_EQ(use_of(task.curricula, "frame_sampler").parameters.at("rate"), .01);
  const TaskDefinition& built_in = definition_of(tracking());
  for (size_t k = 0; k < task.observations.size(); ++k) {
    EXPECT_EQ(task.observations[k].noise, 0.5 * built_in.observations[k].noise);
    EXPECT_EQ(task.critic[k].noise, 0.0);
  }
}

TEST(TaskConfig, ACurriculumIsSwitchedOff) {
  const json off = {{"enabled", false}};
  EXPECT_FALSE(configured(tracking({{"curriculum", {{"frame_sampler", off}, {"penalty", off}}}}))
                   .curricula[0]
                   .enabled)
      << "and the penalty curriculum, which this task does not have, is no error";
}

TEST(TaskConfig, NullIsAbsent) {
  const json object = {{"a", nullptr}, {"b", 1}};
  EXPECT_EQ(member(object, "a"), nullptr);
  EXPECT_EQ(member(object, "c"), nullptr);
  EXPECT_EQ(*member(object, "b"), 1);
  EXPECT_TRUE(env_section(json::object()).empty());
}

}  // namespace
}  // namespace millrace

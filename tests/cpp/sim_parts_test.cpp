// Tests for cpp/sim_parts.cpp.
#include "sim_parts.h"

#include <gtest/gtest.h>

#include "resources.h"
#include "run_fixture.h"
#include "thread_choice.h"

namespace millrace {
namespace {

using nlohmann::json;

TEST(SimParts, BuildsTheEnvironmentsOfATask) {
  SimParts parts(g1_config(), 3, 2, 1);
  EXPECT_EQ(parts.pool->workers(), 2);
  EXPECT_EQ(parts.task->layout.width(), 430);
  EXPECT_EQ(parts.thread_choice, (json{{"requested", 2}, {"effective", 2}}));
  parts.update->start_episodes(*parts.physics, false);
  parts.physics->step(parts.update->actions(), 0);
  const json described = parts.describe();
  EXPECT_EQ(described.at("host_owned"), true);
  EXPECT_EQ(described.at("randomises_gains"), true);
  EXPECT_EQ(described.at("nq"), 36);
  EXPECT_EQ(described.at("nv"), 35);
  EXPECT_EQ(described.at("actions"), 29);
  EXPECT_EQ(described.at("unstable"), 0);
  EXPECT_EQ(described.at("first_bad"), "");
  EXPECT_FALSE(described.at("mujoco").get<std::string>().empty());
}

TEST(SimParts, WithoutANumberTheThreadsAreMeasured) {
  SimParts parts(cartpole_config(), 8, 0, 1);
  EXPECT_EQ(parts.thread_choice.at("requested"), "auto");
  EXPECT_EQ(parts.thread_choice.at("effective"), parts.pool->workers());
  const std::vector<int> candidates = thread_candidates();
  const json& measured = parts.thread_choice.at("measured");
  ASSERT_EQ(measured.size(), candidates.size());
  double best = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_EQ(measured[i].at("threads"), candidates[i]);
    best = std::max(best, measured[i].at("env_steps_per_s").get<double>());
  }
  EXPECT_GT(best, 0.0);
}

TEST(SimParts, TheRobotComesFromTheResourcesOrTheUser) {
  EXPECT_EQ(resources_dir_of(cartpole_config()), resources());
  EXPECT_THROW(SimParts(cartpole_config({{"resources_dir", "/nowhere"}}), 1, 1, 1), Failure);
  const json own = {{"resources_dir", "/nowhere"},
                    {"env", {{"model_file", resources() + "/models/cartpole.xml"}}}};
  EXPECT_EQ(SimParts(cartpole_config(own), 1, 1, 1).task->layout.action_dim, 1);
}

}  // namespace
}  // namespace millrace

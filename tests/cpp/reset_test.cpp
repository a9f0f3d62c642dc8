// Tests for reset.h: ranges, unit root, independence.
#include "reset.h"

#include <gtest/gtest.h>

#include <cmath>

#include "task_fixture.h"

namespace millrace {
namespace {

struct Start {
  std::vector<double> qpos, qvel, gains;

  Start(const ResetSpec& spec, uint64_t seed, uint64_t tick, int env)
      : qpos(spec.qpos.size()), qvel(static_cast<size_t>(spec.nv)), gains(2) {
    draw_start(spec, seed, tick, env, qpos.data(), qvel.data(), gains.data());
  }
};

TEST(Reset, G1StartsInItsRanges) {
  const Task task = make_task({{"task", "g1_walk_flat"}}, g1_model());
  double widest_yaw = 0;
  for (int env = 0; env < 300; ++env) {
    const Start start(task.reset, 1, 2, env);
    EXPECT_LE(std::abs(start.qpos[0]), 0.5);
    EXPECT_LE(std::abs(start.qpos[1]), 0.5);
    EXPECT_EQ(start.qpos[2], 0.754);
    EXPECT_NEAR(std::hypot(start.qpos[3], start.qpos[6]), 1.0, 1e-12);
    EXPECT_EQ(start.qpos[4], 0.0);
    widest_yaw = std::max(widest_yaw, 2 * std::abs(std::atan2(start.qpos[6], start.qpos[3])));
    for (size_t i = 0; i < 6; ++i) EXPECT_LE(std::abs(start.qvel[i]), 0.5);
    for (size_t i = 6; i < 35; ++i) EXPECT_EQ(start.qvel[i], 0.0);
    for (size_t i = 7; i < 36; ++i) EXPECT_EQ(start.qpos[i], task.reset.qpos[i]);
    for (double gain : start.gains) EXPECT_TRUE(gain >= 0.9 && gain <= 1.1);
    EXPECT_NE(start.gains[0], start.gains[1]);
  }
  EXPECT_GT(widest_yaw, 3.0);
}

TEST(Reset, CartpoleHangs) {
  const Task task = make_task({{"task", "cartpole_swingup"}}, cartpole_model());
  const Start start(task.reset, 1, 2, 3);
  EXPECT_LE(std::abs(start.qpos[0]), 0.05);
  EXPECT_NEAR(start.qpos[1], 3.14159265358979, 0.05);
  EXPECT_NE(start.qpos[1], 3.14159265358979);
  EXPECT_LE(std::abs(start.qvel[0]), 0.05);
  EXPECT_NE(start.qvel[1], 0.0);
  EXPECT_EQ(start.gains[0], 1.0);
}

TEST(Reset, DependsOnSeedTickAndEnvironmentAlone) {
  const Task task = make_task({{"task", "g1_walk_flat"}}, g1_model());
  EXPECT_EQ(Start(task.reset, 1, 2, 3).qpos, Start(task.reset, 1, 2, 3).qpos);
  EXPECT_NE(Start(task.reset, 1, 2, 3).qpos, Start(task.reset, 2, 2, 3).qpos);
  EXPECT_NE(Start(task.reset, 1, 2, 3).qpos, Start(task.reset, 1, 3, 3).qpos);
  EXPECT_NE(Start(task.reset, 1, 2, 3).qpos, Start(task.reset, 1, 2, 4).qpos);
}

}  // namespace
}  // namespace millrace

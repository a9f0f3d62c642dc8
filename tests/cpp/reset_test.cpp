// Tests for reset.h: ranges, unit root, independence.
#include "reset.h"

#include <gtest/gtest.h>

#include <algorithm>
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

// A motion of one frame with a turned root; joints at .7, near the upper limit of .8.
struct OneFrame {
  std::vector<float> joints = std::vector<float>(29, 0.7f), rates = std::vector<float>(29, -0.3f);
  std::vector<float> position = {1, 2, 3}, quaternion = {0.5f, 0.5f, 0.5f, 0.5f};
  std::vector<float> linear = {0.1f, 0.2f, 0.3f}, angular = {1, 2, 4};
  int clip_end = 1;
  MotionView view = {joints.data(),
                     rates.data(),
                     position.data(),
                     quaternion.data(),
                     linear.data(),
                     angular.data(),
                     &clip_end,
                     1,
                     29,
                     1};
};

struct MotionStart {
  std::vector<double> qpos = std::vector<double>(36), qvel = std::vector<double>(35);
  double gains[2] = {};

  MotionStart(const MotionResetSpec& noise, uint64_t tick, int env) {
    const SimModel model = g1_model();
    ResetSpec spec;
    spec.qpos = model.default_qpos;
    spec.nv = model.nv;
    MotionResetSpec full = noise;
    full.qpos_address = model.joint_qpos_address;
    full.dof_address = model.joint_dof_address;
    full.joint_lower = model.joint_lower;
    full.joint_upper = model.joint_upper;
    const OneFrame motion;
    draw_motion_start(spec, full, motion.view, 0, 1, tick, env, qpos.data(), qvel.data(), gains);
  }
};

TEST(Reset, WithoutNoiseAMotionStartsInItsFrame) {
  const MotionStart start({}, 5, 0);
  const std::vector<double> root = {1, 2, 3, 0.5, 0.5, 0.5, 0.5};
  EXPECT_EQ(std::vector<double>(start.qpos.begin(), start.qpos.begin() + 7), root);
  // (.5, .5, .5, .5) turns x to y, y to z, z to x: (1, 2, 4) in the world is (2, 4, 1) locally.
  const double velocity[6] = {0.1, 0.2, 0.3, 2, 4, 1};
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(start.qvel[i], velocity[i], 1e-7) << i;
  for (size_t j = 0; j < 29; ++j) {
    EXPECT_EQ(start.qpos[7 + j], 0.7f);
    EXPECT_EQ(start.qvel[6 + j], -0.3f);
  }
}

TEST(Reset, NoiseTurnsTheRootInWorldAxes) {
  MotionResetSpec noise;
  noise.root_pose[5] = 1.5;
  const MotionStart start(noise, 5, 0);
  // q = yaw * reference: the rotation from the reference to q is about the world's z.
  const double* q = &start.qpos[3];
  const double turn[4] = {0.5 * (q[0] + q[1] + q[2] + q[3]), 0.5 * (-q[0] + q[1] - q[2] + q[3]),
                          0.5 * (-q[0] + q[1] + q[2] - q[3]), 0.5 * (-q[0] - q[1] + q[2] + q[3])};
  EXPECT_NEAR(turn[1], 0, 1e-12);
  EXPECT_NEAR(turn[2], 0, 1e-12);
  EXPECT_GT(std::abs(turn[3]), 0.01);
  EXPECT_NEAR(turn[0] * turn[0] + turn[3] * turn[3], 1, 1e-12);
}

TEST(Reset, MotionNoiseStaysInItsRangesAndTheJointsInTheirLimits) {
  MotionResetSpec noise;
  const double pose[6] = {.05, .05, .01, .1, .1, .2}, velocity[6] = {.5, .5, .2, .52, .52, .78};
  std::copy(pose, pose + 6, noise.root_pose);
  std::copy(velocity, velocity + 6, noise.root_velocity);
  noise.joint_position = 0.2;
  double widest[3] = {}, fastest[3] = {}, highest = -1, lowest = 1;
  for (int env = 0; env < 500; ++env) {
    const MotionStart start(noise, 3, env);
    for (size_t i = 0; i < 3; ++i) {
      const double place[3] = {1, 2, 3}, linear[3] = {0.1, 0.2, 0.3};
      widest[i] = std::max(widest[i], std::abs(start.qpos[i] - place[i]));
      fastest[i] = std::max(fastest[i], std::abs(start.qvel[i] - linear[i]));
    }
    const auto joints = std::minmax_element(start.qpos.begin() + 7, start.qpos.end());
    lowest = std::min(lowest, *joints.first), highest = std::max(highest, *joints.second);
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_LE(widest[i], pose[i] + 1e-9);
    EXPECT_GT(widest[i], 0.95 * pose[i]);
    EXPECT_LE(fastest[i], velocity[i] + 1e-7);
    EXPECT_GT(fastest[i], 0.95 * velocity[i]);
  }
  EXPECT_EQ(highest, 0.8) << "the upper limit";
  EXPECT_GT(lowest, 0.5 - 1e-6);
  EXPECT_LT(lowest, 0.51);
}

}  // namespace
}  // namespace millrace

// Tests for task_g1_walk_flat.h on the real robot: layout, mirror map against physics, cost.
#include "task_g1_walk_flat.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <iostream>

#include "physics_mujoco.h"
#include "resources.h"
#include "update.h"

namespace millrace {
namespace {

const nlohmann::json kClean = {{"task", "g1_walk_flat"},
                               {"env", {{"noise", false}, {"events", false}}}};

struct Robot {
  WorkerPool pool{2};
  PhysicsMujoco physics;
  Task task;
  UpdateStep update;
  std::vector<float> rows;

  explicit Robot(int envs, const nlohmann::json& config = kClean)
      : physics(sim_spec_of(config, resources()), envs, pool),
        task(make_task(config, physics.model())),
        update(task, physics.state_view(), envs, 2),
        rows(static_cast<size_t>(envs * task.layout.width())) {
    update.start_episodes(physics, true);
  }
};

TEST(TaskG1WalkFlat, DescriptionMatchesTheRobot) {
  Robot robot(1);
  EXPECT_EQ(static_cast<int>(robot.physics.model().joint_names.size()),
            g1_walk_flat().nominal_joints);
  EXPECT_EQ(robot.physics.model().joint_names, g1_walk_flat().sim.joint_names);
  EXPECT_EQ(robot.task.layout.width(), 430);
}

// K3: mirrored observation and action lead to the mirrored next observation, with the same reward.
TEST(TaskG1WalkFlat, MirrorMapMatchesPhysics) {
  Robot robot(2);
  const SimModel& model = robot.physics.model();
  const MirrorMap& joints = robot.task.symmetry.action;
  std::vector<double> qpos(72), qvel(70), gains(4, 1.0);
  const uint8_t both[2] = {1, 1};
  const float action_size = 0.4f;
  u32 draw = 0;
  const RandomSource random = random_source(8, kStreamReset, 0, 0);
  const auto next = [&](double half_width) {
    return half_width * static_cast<double>(random_uniform(random, draw++, -1, 1));
  };
  std::copy(model.default_qpos.begin(), model.default_qpos.end(), qpos.begin());
  for (int i = 0; i < 29; ++i) qpos[static_cast<size_t>(7 + i)] += next(0.05);
  for (int i = 0; i < 35; ++i) qvel[static_cast<size_t>(i)] = next(0.3);
  std::copy_n(qpos.begin(), 36, qpos.begin() + 36);
  const double root_sign[6] = {1, -1, 1, -1, 1, -1};
  for (size_t i = 0; i < 6; ++i) qvel[35 + i] = root_sign[i] * qvel[i];
  for (size_t j = 0; j < 29; ++j) {
    const auto source = static_cast<size_t>(joints.source[j]);
    qpos[36 + 7 + j] = joints.sign[j] * qpos[7 + source];
    qvel[35 + 6 + j] = joints.sign[j] * qvel[6 + source];
  }
  robot.physics.reset(both, qpos.data(), qvel.data(), gains.data());
  const StateView& state = robot.update.state();
  const float command[5] = {0.5f, 0.3f, -0.2f, 0, 0};
  const MirrorMap rows[2] = {robot.task.symmetry.observation, robot.task.symmetry.critic};
  for (int i = 0; i < 5; ++i) {
    component(state.episode[kCommand], 0, i) = command[i];
    component(state.episode[kCommand], 1, i) = i == 1 || i == 2 ? -command[i] : command[i];
  }
  for (int foot = 0; foot < 2; ++foot) {
    component(state.episode[kGaitPhase], 1, 1 - foot) =
        component(state.episode[kGaitPhase], 0, foot);
  }
  for (uint64_t tick = 0; tick < 20; ++tick) {
    for (int i = 0; i < 29; ++i) robot.update.actions()[i] = action_size * float(next(1));
    joints.apply(robot.update.actions(), robot.update.actions() + 29);
    robot.physics.step(robot.update.actions(), tick);
    counter_of(state.counter[kStep], 0) = counter_of(state.counter[kStep], 1) = 0;
    robot.update.update(tick, 0, 2, robot.rows.data());
    const RowLayout& at = robot.task.layout;
    const float* row = robot.rows.data();
    const float* image = row + at.width();
    const int offsets[2] = {at.next_observation(), at.next_critic()};
    for (int part = 0; part < 2; ++part) {
      std::vector<float> mirrored(rows[part].source.size());
      rows[part].apply(row + offsets[part], mirrored.data());
      for (size_t i = 0; i < mirrored.size(); ++i) {
        ASSERT_NEAR(mirrored[i], image[offsets[part] + static_cast<int>(i)], 1e-5)
            << "tick " << tick << ", component " << i;
      }
    }
    ASSERT_NEAR(row[at.reward()], image[at.reward()], 1e-5) << tick;
    ASSERT_EQ(row[at.done()], 0.0f);
  }
}

TEST(TaskG1WalkFlat, AnUncontrolledRobotFallsAndStartsAgain) {
  Robot robot(16, {{"task", "g1_walk_flat"}});
  int ended = 0;
  for (uint64_t tick = 0; tick < 150; ++tick) {
    if (robot.update.push_pending()) {
      robot.physics.apply_velocity_change(robot.update.push_mask(), robot.update.push_velocity());
    }
    robot.physics.step(robot.update.actions(), tick);
    robot.update.update(tick, 0, 16, robot.rows.data());
    for (float x : robot.rows) ASSERT_TRUE(std::isfinite(x));
    ended += robot.update.reset(tick, robot.physics);
  }
  EXPECT_GE(ended, 16);
  const nlohmann::json statistics = robot.update.take_statistics();
  EXPECT_GT(statistics["end/tilt"], 0);
  EXPECT_GT(statistics["episode_length_mean"], 20);
  EXPECT_LT(statistics["episode_length_mean"], 130);
  EXPECT_EQ(statistics["penalty_scale"], 0.5f);
}

// Must-show 7 asks for at most 15 % of the physics; physics takes about 200 us per environment.
TEST(TaskG1WalkFlat, UpdateIsCheapNextToPhysics) {
  Robot robot(64, {{"task", "g1_walk_flat"}});
  using Clock = std::chrono::steady_clock;
  Clock::duration physics{}, update{};
  for (uint64_t tick = 0; tick < 30; ++tick) {
    const auto start = Clock::now();
    robot.physics.step(robot.update.actions(), tick);
    const auto stepped = Clock::now();
    robot.update.update(tick, 0, 64, robot.rows.data());
    const auto updated = Clock::now();
    robot.update.reset(tick, robot.physics);
    physics += stepped - start;
    update += updated - stepped;
  }
  const auto microseconds = [](Clock::duration d) {
    return std::chrono::duration<double, std::micro>(d).count() / (30 * 64);
  };
  RecordProperty("update_us", std::to_string(microseconds(update)));
  RecordProperty("physics_us", std::to_string(microseconds(physics)));
  std::cout << "update " << microseconds(update) << " us, physics " << microseconds(physics)
            << " us per environment on two workers\n";
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(microseconds(update), 20);
#endif
}

}  // namespace
}  // namespace millrace

// Tests for task_g1_motion_tracking.h on the real robot: layout, following a frame per tick, clip
// ends, pushes, and whole runs.
#include "task_g1_motion_tracking.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <iostream>

#include "motion_clip.h"
#include "run.h"
#include "run_fixture.h"
#include "sim_parts.h"

namespace millrace {
namespace {

using nlohmann::json;
using Training = Run;

json clean(json more = json::object()) {
  json config = motion_config({{"env", {{"noise", false}, {"events", false}}}});
  config.merge_patch(more);
  return config;
}

struct Robot {
  SimParts parts;
  int envs;
  std::vector<float> rows;

  explicit Robot(int num_envs, const json& config = clean(), bool desynchronised = false)
      : parts(config, num_envs, 2, 3),
        envs(num_envs),
        rows(static_cast<size_t>(num_envs * parts.task->layout.width())) {
    parts.update->start_episodes(*parts.physics, desynchronised);
  }

  const StateView& state() const { return parts.update->state(); }
  int& counter(CounterField field, int env) { return counter_of(state().counter[field], env); }
  float* row(int env) { return rows.data() + env * parts.task->layout.width(); }
  void step(uint64_t tick) {
    UpdateStep& update = *parts.update;
    if (update.push_pending()) {
      parts.physics->apply_velocity_change(update.push_mask(), update.push_velocity());
    }
    parts.physics->step(update.actions(), tick);
    update.update(tick, 0, envs, rows.data());
  }
  int tick(uint64_t tick) {
    step(tick);
    return parts.update->reset(tick, *parts.physics);
  }
  float reward(const std::string& name, int env) {
    const std::vector<std::string>& names = parts.task->reward_names;
    for (size_t k = 0; k < names.size(); ++k) {
      const RewardSlot& slot = parts.task->params.reward[k];
      if (names[k] != name) continue;
      return component(state().episode[kTermReward], env, static_cast<int>(k)) / slot.weight /
             0.02f;
    }
    ADD_FAILURE() << name;
    return 0;
  }
};

json without_start_noise() {
  json params;
  for (const TermParameter& parameter : term_info(TermKind::kCommand, "motion").parameters) {
    params[parameter.name] = 0;
  }
  return clean({{"commands", {{"motion", {{"params", params}}}}}});
}

TEST(TaskG1MotionTracking, RowHas930Floats) {
  Robot robot(1);
  EXPECT_EQ(robot.parts.task->layout.observation_dim, 160);
  EXPECT_EQ(robot.parts.task->layout.critic_dim, 289);
  EXPECT_EQ(robot.parts.task->layout.width(), 930);
  EXPECT_EQ(robot.parts.task->params.constants.anchor_body, 7);
  EXPECT_FALSE(robot.parts.task->symmetry.available);
  EXPECT_EQ(robot.parts.describe().at("motion").at("frames"), 500);
}

// An episode starts exactly in its frame when nothing is drawn around it, and the next tick is
// compared with the next frame.
TEST(TaskG1MotionTracking, StartsInTheReferenceFrame) {
  Robot robot(8, without_start_noise());
  const MotionClip& motion = *robot.parts.task->motion;
  const StateView& state = robot.state();
  for (int env = 0; env < 8; ++env) {
    const int frame = robot.counter(kFrame, env) - 1;
    const auto at = static_cast<size_t>(frame) * 14;
    for (int i = 0; i < 42; ++i) {
      const size_t k = at * 3 + static_cast<size_t>(i);
      EXPECT_NEAR(component(state.sim[kBodyPosition], env, i), motion.body_position[k], 1e-5);
      EXPECT_NEAR(component(state.sim[kBodyLinearVelocity], env, i), motion.body_linear_velocity[k],
                  1e-4);
      EXPECT_NEAR(component(state.sim[kBodyAngularVelocity], env, i),
                  motion.body_angular_velocity[k], 1e-4);
    }
    // The first observation is of that frame: no error to the anchor, no turn.
    const float* seen = robot.parts.update->observations() + env * 160;
    for (int i = 0; i < 29; ++i) {
      EXPECT_EQ(seen[i], motion.joint_position[static_cast<size_t>(frame * 29 + i)]);
    }
    const float expected[9] = {0, 0, 0, 1, 0, 0, 1, 0, 0};
    for (int i = 0; i < 9; ++i) EXPECT_NEAR(seen[58 + i], expected[i], 1e-5);
  }
  robot.step(0);
  for (int env = 0; env < 8; ++env) {
    EXPECT_GT(robot.reward("motion_body_pos", env), 0.9f);
    EXPECT_GT(robot.reward("motion_global_root_ori", env), 0.9f);
    const RowLayout& at = robot.parts.task->layout;
    EXPECT_EQ(robot.row(env)[at.next_observation()],
              motion.joint_position[static_cast<size_t>((robot.counter(kFrame, env) - 1) * 29)]);
  }
}

TEST(TaskG1MotionTracking, AFrameATickAndTheClipsEndTruncates) {
  Robot robot(2);
  robot.counter(kFrame, 0) = 100;
  robot.counter(kFrame, 1) = 499;
  robot.step(0);
  const RowLayout& at = robot.parts.task->layout;
  EXPECT_EQ(robot.counter(kFrame, 0), 101);
  EXPECT_EQ(robot.row(0)[at.done()], 0.0f);
  EXPECT_EQ(robot.row(1)[at.done()], 1.0f);
  const std::string reason =
      robot.parts.task->termination_names[static_cast<size_t>(robot.counter(kEndReason, 1) - 1)];
  // The last frame may also be too far away for this robot; that outranks the clip's end.
  EXPECT_EQ(robot.row(1)[at.truncated()], reason == "clip_end" ? 1.0f : 0.0f) << reason;
  EXPECT_EQ(robot.counter(kFrame, 1), 499) << "a done environment keeps its frame";
  robot.parts.update->reset(0, *robot.parts.physics);
  EXPECT_EQ(robot.counter(kFrame, 0), 101);
  EXPECT_GE(robot.counter(kFrame, 1), 1);
  EXPECT_LE(robot.counter(kFrame, 1), 499);
}

TEST(TaskG1MotionTracking, AnUncontrolledRobotFailsAndTheSamplerHearsOfIt) {
  Robot robot(16, motion_config());
  bool pushed = false;
  int ended = 0;
  for (uint64_t tick = 0; tick < 150; ++tick) {
    ended += robot.tick(tick);
    for (float x : robot.rows) ASSERT_TRUE(std::isfinite(x));
    const float* push = robot.parts.update->push_velocity();
    const float ranges[6] = {.5f, .5f, .2f, .52f, .52f, .78f};
    for (int env = 0; env < 16; ++env) {
      for (int i = 0; i < 6; ++i) ASSERT_LE(std::abs(push[6 * env + i]), ranges[i]);
      if (push[6 * env] == 0.0f) continue;
      pushed = true;
      for (int i = 0; i < 6; ++i) EXPECT_NE(push[6 * env + i], 0.0f) << i;
    }
  }
  EXPECT_TRUE(pushed);
  EXPECT_GE(ended, 16);
  const json metrics = robot.parts.update->take_statistics();
  EXPECT_GT(metrics["end/anchor_height"].get<int>() + metrics["end/anchor_tilt"].get<int>() +
                metrics["end/end_effector_height"].get<int>(),
            0)
      << metrics;
  EXPECT_LT(metrics["frame_sampler/entropy"], 1.0);
  EXPECT_GT(metrics["frame_sampler/top1_probability"], 1.0 / 11);
  EXPECT_EQ(metrics["unstable"], 0);
}

TEST(TaskG1MotionTracking, UpdateIsCheapNextToPhysics) {
  Robot robot(64, motion_config());
  using Clock = std::chrono::steady_clock;
  Clock::duration spent{};
  for (uint64_t tick = 0; tick < 20; ++tick) {
    robot.parts.physics->step(robot.parts.update->actions(), tick);
    const auto start = Clock::now();
    robot.parts.update->update(tick, 0, 64, robot.rows.data());
    spent += Clock::now() - start;
    robot.parts.update->reset(tick, *robot.parts.physics);
  }
  const double us = std::chrono::duration<double, std::micro>(spent).count() / (20 * 64);
  std::cout << "update " << us << " us per environment\n";
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(us, 30);
#endif
}

// ---- whole runs ----

Tensors tensors_after(const json& config, std::vector<uint64_t> stretches) {
  Training run(config);
  for (uint64_t ticks : stretches) run.advance(ticks);
  return tensors_of(run);
}

TEST(TaskG1MotionTracking, TheSameSeedGivesTheSameRun) {
  const json config = motion_config();
  const Tensors first = tensors_after(config, {30});
  EXPECT_EQ(differences(first, tensors_after(config, {30})), Names{});
  const Names changed = differences(first, tensors_after(motion_config({{"seed", 2}}), {30}));
  EXPECT_NE(std::find(changed.begin(), changed.end(), "update/frame"), changed.end());
}

TEST(TaskG1MotionTracking, AResumedRunContinuesExactly) {
  // Long enough for failures: an uncontrolled robot falls within 60 ticks.
  const json config = motion_config();
  const Tensors whole = tensors_after(config, {70, 30});
  Training first(config);
  first.advance(70);
  Training second(config);
  restore(second, tensors_of(first), true);
  second.advance(30);
  EXPECT_EQ(differences(whole, tensors_of(second)), Names{});
  const std::string& failures = whole.at("curriculum/frame_failures");
  EXPECT_NE(failures, std::string(failures.size(), '\0'));
}

TEST(TaskG1MotionTracking, ACheckpointOfAnotherMotionIsRefused) {
  Training run(motion_config());
  Tensors tensors = tensors_of(run);
  tensors["curriculum/motion_digest"][0] ^= 1;
  Training other(motion_config());
  try {
    restore(other, tensors, true);
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(),
                 "the checkpoint belongs to another motion than built-in: env.motion_file has "
                 "changed");
  }
}

}  // namespace
}  // namespace millrace

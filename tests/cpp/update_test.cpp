// Tests for update.h and update_body.h: the order of the seven stages, what a row holds, resets.
#include "update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "task_fixture.h"

namespace millrace {
namespace {

using nlohmann::json;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A G1 task on random physics, with everything that a tick of the collector does.
struct Rig {
  Task task;
  RandomSim sim;
  std::unique_ptr<UpdateStep> update;
  std::vector<float> rows;
  int envs;

  explicit Rig(int num_envs = 3, json config = {{"task", "g1_walk_flat"}}, uint64_t seed = 5)
      : task(make_task(config, g1_model())), sim(g1_model(), true, num_envs, 9), envs(num_envs) {
    update = std::make_unique<UpdateStep>(task, sim.state_view(), num_envs, seed);
    rows.assign(static_cast<size_t>(num_envs * task.layout.width()), kNaN);
    update->start_episodes(sim, true);
    for (int env = 0; env < num_envs; ++env) counter(kStep, env) = 0;
  }

  // Physics and policy of a tick; `run` does the rest up to the reset.
  void step(uint64_t tick) {
    for (int i = 0; i < envs * task.layout.action_dim; ++i) {
      update->actions()[i] = std::sin(0.1f * static_cast<float>(i + 7 * static_cast<int>(tick)));
    }
    sim.step(update->actions(), tick);
  }
  void run(uint64_t tick) { update->update(tick, 0, envs, rows.data()); }
  void tick(uint64_t tick) {
    step(tick);
    run(tick);
    update->reset(tick, sim);
  }

  int& counter(CounterField field, int env) {
    return counter_of(update->state().counter[field], env);
  }
  float& value(EpisodeField field, int env, int i) {
    return component(update->state().episode[field], env, i);
  }
  float* row(int env) { return rows.data() + env * task.layout.width(); }
  std::vector<float> part(int env, int offset, int count) {
    return {row(env) + offset, row(env) + offset + count};
  }
  std::vector<float> observation(int env) {
    const int dim = task.layout.observation_dim;
    return {update->observations() + env * dim, update->observations() + (env + 1) * dim};
  }
};

TEST(Update, G1RowHas430Floats) {
  Rig rig;
  EXPECT_EQ(rig.task.layout.width(), 430);
  EXPECT_EQ(rig.task.layout.observation_dim, 98);
  EXPECT_EQ(rig.task.layout.critic_dim, 101);
}

TEST(Update, RowIsPackedBeforeTheReset) {
  Rig rig;
  rig.step(0);
  const std::vector<float> seen = rig.observation(1);
  rig.sim.at(kRootPosition, 1, 2) = 0.1f;  // falls
  rig.run(0);
  const RowLayout& at = rig.task.layout;
  EXPECT_EQ(rig.part(1, at.observation(), 98), seen);
  const std::vector<float> last = rig.part(1, at.next_observation(), 98);
  EXPECT_EQ(rig.row(1)[at.done()], 1.0f);
  EXPECT_EQ(rig.row(1)[at.truncated()], 0.0f);
  EXPECT_NEAR(last[0], 0.25f * rig.sim.at(kGyro, 1, 0), 1e-7f);
  EXPECT_EQ(rig.update->reset(0, rig.sim), 1);
  // H1: the terminal observation stays in the row, the policy sees the new episode's first one.
  EXPECT_EQ(rig.part(1, at.next_observation(), 98), last);
  EXPECT_NE(rig.observation(1), last);
  const std::vector<float> first = rig.observation(1);
  rig.step(1);
  rig.run(1);
  EXPECT_EQ(rig.part(1, at.observation(), 98), first);
  EXPECT_EQ(rig.part(1, at.critic(), 6)[0], rig.row(1)[at.critic()]);
}

TEST(Update, RowsChainWithoutAReset) {
  Rig rig;
  rig.tick(0);
  const RowLayout& at = rig.task.layout;
  const std::vector<float> next = rig.part(0, at.next_observation(), 98);
  const std::vector<float> next_critic = rig.part(0, at.next_critic(), 101);
  rig.tick(1);
  EXPECT_EQ(rig.part(0, at.observation(), 98), next);
  EXPECT_EQ(rig.part(0, at.critic(), 101), next_critic);
}

TEST(Update, RewardIsTheSumOfWeightedTerms) {
  Rig rig(1, {{"task", "g1_walk_flat"},
              {"rewards", {{"alive", {{"weight", 3.0}}}, {"lin_vel_z", {{"weight", -2.0}}}}},
              {"curriculum", {{"penalty", {{"start", 0.75}}}}}});
  rig.step(0);
  rig.run(0);
  const auto& names = rig.task.reward_names;
  double sum = 0;
  for (size_t k = 0; k < names.size(); ++k) {
    const double term = rig.value(kTermReward, 0, static_cast<int>(k));
    sum += term;
    if (names[k] == "alive") {
      EXPECT_NEAR(term, 3.0 * 0.02, 1e-7);
    }
    if (names[k] == "lin_vel_z") {
      const double v = rig.sim.at(kLocalLinearVelocity, 0, 2);
      EXPECT_NEAR(term, -2.0 * 0.75 * 0.02 * v * v, 1e-7) << "the penalty scale is .75";
    }
  }
  EXPECT_NEAR(rig.row(0)[rig.task.layout.reward()], sum, 1e-5);
  EXPECT_EQ(names.size(), 10u) << "terms of weight 0 are not evaluated";
}

TEST(Update, FallingAtTheTimeLimitIsATermination) {
  Rig rig;
  rig.step(0);
  rig.counter(kStep, 0) = 999;  // env 0: both; env 1: time limit alone
  rig.counter(kStep, 1) = 999;
  rig.sim.at(kRootPosition, 0, 2) = 0.1f;
  rig.run(0);
  const RowLayout& at = rig.task.layout;
  EXPECT_EQ(rig.row(0)[at.done()], 1.0f);
  EXPECT_EQ(rig.row(0)[at.truncated()], 0.0f);
  EXPECT_EQ(rig.counter(kEndReason, 0), 2);
  EXPECT_EQ(rig.row(1)[at.done()], 1.0f);
  EXPECT_EQ(rig.row(1)[at.truncated()], 1.0f);
  EXPECT_EQ(rig.counter(kEndReason, 1), 3);
  EXPECT_EQ(rig.row(2)[at.done()], 0.0f);
}

TEST(Update, UnstablePhysicsKeepsTheRowHarmless) {
  Rig rig;
  rig.step(0);
  rig.sim.at(kUnstable, 1, 0) = 1;
  const std::vector<float> seen = rig.observation(1);
  rig.run(0);
  const RowLayout& at = rig.task.layout;
  EXPECT_EQ(rig.part(1, at.next_observation(), 98), seen);
  EXPECT_EQ(rig.part(1, at.next_critic(), 101), rig.part(1, at.critic(), 101));
  EXPECT_EQ(rig.row(1)[at.reward()], 0.0f);
  EXPECT_EQ(rig.row(1)[at.done()], 1.0f);
  EXPECT_EQ(rig.row(1)[at.truncated()], 0.0f);
  rig.update->reset(0, rig.sim);
  EXPECT_EQ(rig.update->statistics().unstable_count(), 1u);
  EXPECT_EQ(rig.update->statistics().describe_first_bad(),
            "tick 0, environment 1: physics was unstable");
}

TEST(Update, NothingNonFiniteEntersARow) {
  Rig rig(4);
  rig.step(0);
  rig.sim.at(kGyro, 0, 1) = kNaN;                     // reward and observation
  rig.sim.at(kJointVelocity, 1, 3) = INFINITY;        // observation alone
  rig.update->actions()[2 * 29 + 4] = kNaN;           // action
  rig.sim.at(kLocalLinearVelocity, 3, 2) = INFINITY;  // critic alone
  rig.run(0);
  for (float x : rig.rows) EXPECT_TRUE(std::isfinite(x));
  for (int env = 0; env < 4; ++env) {
    EXPECT_EQ(rig.row(env)[rig.task.layout.done()], 1.0f);
    EXPECT_EQ(rig.row(env)[rig.task.layout.truncated()], 0.0f);
    EXPECT_EQ(rig.row(env)[rig.task.layout.reward()], 0.0f);
  }
  EXPECT_EQ(rig.update->reset(0, rig.sim), 4);
  EXPECT_EQ(rig.update->statistics().non_finite_count(), 4u);
  EXPECT_EQ(rig.update->statistics().describe_first_bad(),
            "tick 0, environment 0: rewards.penalty_ang_vel_xy was not finite");
  rig.tick(1);
  for (float x : rig.rows) EXPECT_TRUE(std::isfinite(x));
}

TEST(Update, NoiseIsOnTheActorAlone) {
  Rig noisy(1);
  Rig clean(1, {{"task", "g1_walk_flat"}, {"env", {{"noise", false}}}});
  noisy.tick(0);
  clean.tick(0);
  const RowLayout& at = noisy.task.layout;
  const float* critic = noisy.row(0) + at.next_critic();
  const float* actor = noisy.row(0) + at.next_observation();
  int different = 0;
  for (int i = 0; i < 98; ++i) {
    const bool joint = i >= 6 && i < 64;
    const float bound = i < 35 ? 0.01f : 0.05f * 0.1f;
    EXPECT_LE(std::abs(actor[i] - critic[i]), joint ? bound * 1.001f : 0.0f) << i;
    different += actor[i] != critic[i] ? 1 : 0;
    EXPECT_EQ(clean.row(0)[at.next_observation() + i], critic[i]);
  }
  EXPECT_GE(different, 55);
}

TEST(Update, ADoneEnvironmentDrawsNoCommandAndNoPush) {
  Rig rig;
  rig.step(0);
  for (int env = 0; env < 2; ++env) {
    rig.counter(kCommandTimer, env) = 1;
    rig.counter(kPushTimer, env) = 1;
  }
  rig.sim.at(kRootPosition, 0, 2) = 0.1f;
  const float before[2] = {rig.value(kCommand, 0, 2), rig.value(kCommand, 1, 2)};
  rig.run(0);
  EXPECT_EQ(rig.value(kCommand, 0, 2), before[0]);
  EXPECT_NE(rig.value(kCommand, 1, 2), before[1]);
  EXPECT_EQ(rig.value(kPushVelocity, 0, 0), 0.0f);
  EXPECT_NE(rig.value(kPushVelocity, 1, 0), 0.0f);
  rig.update->reset(0, rig.sim);
  EXPECT_EQ(rig.counter(kCommandTimer, 0), 500) << "the reset restarts the timers";
  EXPECT_GE(rig.counter(kPushTimer, 0), 250);
  EXPECT_LE(rig.counter(kPushTimer, 0), 500);
  EXPECT_EQ(rig.counter(kCommandTimer, 1), 500);
  EXPECT_TRUE(rig.update->push_pending());
  EXPECT_EQ(rig.update->push_mask()[0], 0);
  EXPECT_EQ(rig.update->push_mask()[1], 1);
  EXPECT_LE(std::abs(rig.update->push_velocity()[6]), 0.5f);
  EXPECT_EQ(rig.update->push_velocity()[6 + 2], 0.0f);
  rig.tick(1);
  EXPECT_FALSE(rig.update->push_pending()) << "one step takes it";
}

TEST(Update, EventsOffMeansNoPushAndNominalGains) {
  Rig rig(1, {{"task", "g1_walk_flat"}, {"env", {{"events", false}}}});
  EXPECT_EQ(rig.sim.last_gain, 1.0);
  EXPECT_EQ(rig.update->state().episode[kPushVelocity].data, nullptr);
  rig.tick(0);
  EXPECT_FALSE(rig.update->push_pending());
  EXPECT_NE(Rig(1).sim.last_gain, 1.0);
}

TEST(Update, CommandsStayInTheirRanges) {
  Rig rig(500);
  int zero = 0;
  for (int env = 0; env < 500; ++env) {
    const float x = rig.value(kCommand, env, 0), y = rig.value(kCommand, env, 1);
    EXPECT_TRUE(x >= -0.6f && x <= 1.0f && y >= -0.4f && y <= 0.4f);
    EXPECT_LE(std::abs(rig.value(kCommand, env, 2)), 0.8f);
    EXPECT_TRUE((x == 0.0f && y == 0.0f) || std::hypot(x, y) > 0.2f);
    zero += x == 0.0f ? 1 : 0;
  }
  EXPECT_GT(zero, 20);
}

TEST(Update, HeadingModeSteersTheYawRate) {
  Rig rig(1, {{"task", "g1_walk_flat"},
              {"commands", {{"velocity", {{"params", {{"heading_mode", 1}}}}}}}});
  rig.step(0);
  const float yaw = 0.4f;
  const float quaternion[4] = {std::cos(yaw / 2), 0, 0, std::sin(yaw / 2)};
  for (int i = 0; i < 4; ++i) rig.sim.at(kRootQuaternion, 0, i) = quaternion[i];
  rig.value(kCommand, 0, 3) = -0.6f;
  rig.run(0);
  EXPECT_NEAR(rig.value(kCommand, 0, 2), 0.5f * (-0.6f - yaw), 1e-5f);
}

TEST(Update, GaitPhaseAdvancesBeforeRewardsAndIsObserved) {
  Rig rig(1);
  const float left = rig.value(kGaitPhase, 0, 0), right = rig.value(kGaitPhase, 0, 1);
  EXPECT_NEAR(std::abs(right - left), 3.14159265f, 1e-5f);
  rig.tick(0);
  const float step = 6.2831853f * 1.5f * 0.02f;
  EXPECT_NEAR(std::fmod(left + step, 6.2831853f), rig.value(kGaitPhase, 0, 0), 1e-5f);
  EXPECT_EQ(rig.row(0)[rig.task.layout.next_observation() + 96], rig.value(kGaitPhase, 0, 0));
}

TEST(Update, ActionRateSeesTheActionBeforeAndAResetForgetsIt) {
  Rig rig(1);
  rig.tick(0);
  const std::vector<float> first(rig.update->actions(), rig.update->actions() + 29);
  for (int i = 0; i < 29; ++i)
    EXPECT_EQ(rig.value(kLastAction, 0, i), first[static_cast<size_t>(i)]);
  rig.step(1);
  double expected = 0;
  for (int i = 0; i < 29; ++i) {
    const double change = rig.update->actions()[i] - first[static_cast<size_t>(i)];
    expected += -4.0 * 0.5 * 0.02 * change * change;
  }
  rig.sim.at(kRootPosition, 0, 2) = 0.1f;
  rig.run(1);
  EXPECT_EQ(rig.task.reward_names[4], "penalty_action_rate");
  EXPECT_NEAR(rig.value(kTermReward, 0, 4), expected, 1e-5);
  rig.update->reset(1, rig.sim);
  EXPECT_EQ(rig.value(kLastAction, 0, 3), 0.0f);
  EXPECT_EQ(rig.observation(0)[64 + 3], 0.0f) << "last action, as observed";
}

TEST(Update, AirTimeCountsUpToTheTouchDown) {
  Rig rig(1, {{"task", "g1_walk_flat"}, {"rewards", {{"feet_air_time", {{"weight", 1.0}}}}}});
  rig.value(kCommand, 0, 0) = 1.0f;
  for (uint64_t tick = 0; tick < 4; ++tick) {
    rig.step(tick);
    rig.sim.at(kFootContact, 0, 0) = tick == 3 ? 1.0f : 0.0f;
    rig.sim.at(kFootContact, 0, 1) = 1.0f;
    rig.run(tick);
  }
  EXPECT_EQ(rig.task.reward_names.back(), "feet_air_time");
  const int last = static_cast<int>(rig.task.reward_names.size()) - 1;
  EXPECT_NEAR(rig.value(kTermReward, 0, last), 0.02 * (0.06 - 0.4), 1e-6);
  EXPECT_EQ(rig.value(kFootAirTime, 0, 0), 0.0f);
}

TEST(Update, FirstEpisodesAreDesynchronisedAndLeftOut) {
  const Task task = make_task({{"task", "g1_walk_flat"}}, g1_model());
  RandomSim sim(g1_model(), true, 200, 9);
  UpdateStep update(task, sim.state_view(), 200, 1);
  update.start_episodes(sim, true);
  double mean = 0;
  for (int env = 0; env < 200; ++env) {
    const int start = counter_of(update.state().counter[kStep], env);
    EXPECT_TRUE(start >= 0 && start < 1000);
    mean += start / 200.0;
  }
  EXPECT_NEAR(mean, 500, 80);
  std::vector<float> rows(static_cast<size_t>(200 * task.layout.width()));
  sim.step(update.actions(), 0);
  sim.at(kRootPosition, 7, 2) = 0.1f;
  update.update(0, 0, 200, rows.data());
  EXPECT_GE(update.reset(0, sim), 1);
  EXPECT_TRUE(update.statistics().ended().empty());
  EXPECT_EQ(counter_of(update.state().counter[kStep], 7), 0);
  sim.step(update.actions(), 1);
  sim.at(kRootPosition, 7, 2) = 0.1f;
  update.update(1, 0, 200, rows.data());
  update.reset(1, sim);
  ASSERT_EQ(update.statistics().ended().size(), 1u);
  EXPECT_EQ(update.statistics().ended()[0].length, 1);
  EXPECT_EQ(update.statistics().ended()[0].environment, 7);
}

TEST(Update, AnEnvironmentDoesNotDependOnTheirNumberNorOnTheSplit) {
  Rig few(2), many(5);
  for (uint64_t tick = 0; tick < 40; ++tick) {
    few.step(tick);
    many.step(tick);
    std::copy(few.update->actions(), few.update->actions() + 58, many.update->actions());
    if (tick == 20) few.sim.at(kRootPosition, 1, 2) = many.sim.at(kRootPosition, 1, 2) = 0.1f;
    few.run(tick);
    many.update->update(tick, 3, 5, many.rows.data());
    many.update->update(tick, 0, 3, many.rows.data());
    EXPECT_EQ(few.part(0, 0, 860), many.part(0, 0, 860)) << tick;
    few.update->reset(tick, few.sim);
    many.update->reset(tick, many.sim);
  }
}

TEST(Update, TheSeedDecides) {
  Rig a(1), b(1), c(1, {{"task", "g1_walk_flat"}}, 6);
  a.tick(0);
  b.tick(0);
  c.tick(0);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_NE(a.rows, c.rows);
}

TEST(Update, ACheckpointContinuesExactly) {
  Rig a(3), b(3);
  for (uint64_t tick = 0; tick < 30; ++tick) {
    a.step(tick);
    if (tick % 7 == 3) a.sim.at(kRootPosition, static_cast<int>(tick % 3), 2) = 0.1f;
    a.run(tick);
    a.update->reset(tick, a.sim);
  }
  StateRegistry from, to;
  a.update->register_state(from);
  b.update->register_state(to);
  ASSERT_EQ(from.tensors().size(), to.tensors().size());
  for (size_t i = 0; i < from.tensors().size(); ++i) {
    const StateTensor& tensor = from.tensors()[i];
    ASSERT_EQ(tensor.name, to.tensors()[i].name);
    std::copy_n(static_cast<const char*>(tensor.data), tensor.bytes(),
                static_cast<char*>(to.tensors()[i].data));
  }
  b.update->state_restored();
  for (uint64_t tick = 30; tick < 330; ++tick) {
    a.tick(tick);
    b.tick(tick);
    ASSERT_EQ(a.rows, b.rows) << tick;
    ASSERT_EQ(a.update->push_pending(), b.update->push_pending()) << tick;
  }
  EXPECT_EQ(a.update->take_statistics(), b.update->take_statistics());
}

TEST(Update, CarriersAreNamedAndAligned) {
  Rig rig;
  for (const StateTensor& carrier : rig.update->carriers()) {
    EXPECT_EQ(carrier.name.rfind("update/", 0), 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(carrier.data) % 64, 0u);
    EXPECT_EQ(carrier.shape[0], 3);
  }
}

}  // namespace
}  // namespace millrace

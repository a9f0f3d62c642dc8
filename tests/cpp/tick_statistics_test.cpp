// Tests for tick_statistics.h: means, the last hundred episodes, what is left out.
#include "tick_statistics.h"

#include <gtest/gtest.h>

#include "task_fixture.h"
#include "update.h"

namespace millrace {
namespace {

// Fields of two environments, written by hand.
struct Fields {
  Task task = make_task({{"task", "cartpole_swingup"}}, cartpole_model());
  RandomSim sim{cartpole_model(), false, 2, 1};
  UpdateStep update{task, sim.state_view(), 2, 1};
  TickStatistics statistics{{"upright"}, {"time_out", "physics_unstable", "non_finite"}};
  UpdateOutcome outcomes[2] = {{kVerdictGood, 0, 0.25f}, {kVerdictGood, 0, 0.75f}};

  const StateView& state() { return update.state(); }
  void end(int env, float episode_return, int length) {
    counter_of(state().counter[kDone], env) = 1;
    counter_of(state().counter[kEndReason], env) = 1;
    counter_of(state().counter[kTicksLived], env) = length;
    component(state().episode[kReturn], env, 0) = episode_return;
  }
};

TEST(TickStatistics, MeansOverTicksAndEnvironments) {
  Fields fields;
  component(fields.state().episode[kTermReward], 0, 0) = 1.0f;
  component(fields.state().episode[kTermReward], 1, 0) = 2.0f;
  fields.statistics.add(0, fields.state(), fields.outcomes, 2);
  component(fields.state().episode[kTermReward], 1, 0) = 4.0f;
  fields.statistics.add(1, fields.state(), fields.outcomes, 2);
  const nlohmann::json report = fields.statistics.take();
  EXPECT_DOUBLE_EQ(report["reward/upright"], 2.0);
  EXPECT_DOUBLE_EQ(report["command_error"], 0.5);
  EXPECT_FALSE(report.contains("return_mean")) << "no episode ended";
  EXPECT_EQ(report["episodes_ended"], 0);
  EXPECT_FALSE(fields.statistics.take().contains("reward/upright")) << "taking starts anew";
}

TEST(TickStatistics, EndedEpisodesAndTheLastHundred) {
  Fields fields;
  for (int k = 0; k < 150; ++k) {
    fields.end(1, static_cast<float>(k), 10 * k);
    fields.statistics.add(static_cast<uint64_t>(k), fields.state(), fields.outcomes, 2);
    ASSERT_EQ(fields.statistics.ended().size(), 1u);
    EXPECT_EQ(fields.statistics.ended()[0].environment, 1);
    if (k == 99) {
      const nlohmann::json report = fields.statistics.take();
      EXPECT_DOUBLE_EQ(report["ended_length_mean"], 495);
      EXPECT_EQ(report["episodes_ended"], 100);
    }
  }
  const nlohmann::json report = fields.statistics.take();
  EXPECT_DOUBLE_EQ(report["return_mean"], (50 + 149) / 2.0);
  EXPECT_DOUBLE_EQ(report["episode_length_mean"], 10 * (50 + 149) / 2.0);
  EXPECT_EQ(report["episodes"], 150);
  EXPECT_EQ(report["episodes_ended"], 50);
  EXPECT_EQ(report["end/time_out"], 50);
  EXPECT_DOUBLE_EQ(report["ended_return_mean"], (100 + 149) / 2.0);
}

TEST(TickStatistics, DesynchronisedEpisodesAreLeftOut) {
  Fields fields;
  fields.end(0, 5, 50);
  counter_of(fields.state().counter[kDesynchronised], 0) = 1;
  fields.statistics.add(0, fields.state(), fields.outcomes, 2);
  EXPECT_TRUE(fields.statistics.ended().empty());
  EXPECT_EQ(fields.statistics.mean_length_ended(), 0);
}

TEST(TickStatistics, TheFirstBadTickIsKept) {
  Fields fields;
  EXPECT_EQ(fields.statistics.describe_first_bad(), "");
  fields.outcomes[1] = {kVerdictReward, 0, 0};
  fields.statistics.add(7, fields.state(), fields.outcomes, 2);
  fields.outcomes[0] = {kVerdictPhysics, 0, 0};
  fields.statistics.add(8, fields.state(), fields.outcomes, 2);
  EXPECT_EQ(fields.statistics.describe_first_bad(),
            "tick 7, environment 1: rewards.upright was not finite");
  EXPECT_EQ(fields.statistics.unstable_count(), 1u);
  EXPECT_EQ(fields.statistics.non_finite_count(), 2u);
}

}  // namespace
}  // namespace millrace

// Tests for cpp/flashsac_programs.cpp: what is recorded. What it computes is compared with a
// reference in learner_flashsac_test.cpp.
#include "flashsac_programs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "flashsac_fixture.h"

namespace millrace {
namespace {

template <typename Wanted>
std::vector<Wanted> ops_of(const Program& program) {
  std::vector<Wanted> found;
  for (const Program::Record& record : program.records()) {
    if (const Wanted* op = std::get_if<Wanted>(&record.op)) found.push_back(*op);
  }
  return found;
}

TEST(FlashSacPrograms, StatisticsMoveOnlyAfterTheStep) {
  const FlashSacPrograms programs(small_flash_spec(), small_layout());
  for (const Program* program : programs.all()) {
    std::vector<std::string> kinds;
    for (const Program::Record& record : program->records()) kinds.push_back(kind_of(record.op));
    const auto first_of = [&](const Op& op) {
      return std::find(kinds.begin(), kinds.end(), kind_of(op)) - kinds.begin();
    };
    for (const AdamWOp& step : ops_of<AdamWOp>(*program)) EXPECT_FALSE(step.rows.empty());
    EXPECT_LT(first_of(AdamWOp{}), first_of(RunningStatisticsOp{}));
    EXPECT_EQ(kinds.back(), kind_of(StatisticsOp{}));
  }
  const auto critic = ops_of<RunningStatisticsOp>(*programs.critic_program);
  ASSERT_EQ(critic.size(), 2u);
  EXPECT_EQ(critic[0].running.carrier, programs.critic_state.parameters.carrier);
  EXPECT_EQ(critic[1].running.carrier, programs.target.carrier);
  EXPECT_NE(critic[0].batch.carrier, critic[1].batch.carrier);
  EXPECT_EQ(ops_of<RunningStatisticsOp>(*programs.whole_program).size(), 3u);
}

// Both halves together where it learns, one half in evaluation mode where it acts or is only asked.
TEST(FlashSacPrograms, TrainingSeesBothStatesTogether) {
  const LearnerSpec spec = small_flash_spec();
  const FlashSacPrograms programs(spec, small_layout());
  int training = 0, evaluating = 0;
  for (const BatchNormForwardOp& op : ops_of<BatchNormForwardOp>(*programs.whole_program)) {
    EXPECT_EQ(op.norm.rows, op.norm.is_training ? 2 * spec.batch : spec.batch);
    (op.norm.is_training ? training : evaluating) += 1;
  }
  EXPECT_EQ(training, 3 * 5);    // targets, critics, actor
  EXPECT_EQ(evaluating, 2 * 5);  // next action, critics of the actor's loss
  EXPECT_TRUE(ops_of<ProjectTargetOp>(*programs.critic_program)[0].takes_smallest);
  EXPECT_TRUE(ops_of<CriticLossOp>(*programs.critic_program)[0].is_mean_over_groups);
  EXPECT_TRUE(ops_of<ActorLossOp>(*programs.whole_program)[0].takes_smallest);
  EXPECT_TRUE(ops_of<TemperatureOp>(*programs.critic_program).empty());
  EXPECT_EQ(ops_of<TemperatureOp>(*programs.whole_program).size(), 1u);
}

TEST(FlashSacPrograms, SettingsOfAnotherAlgorithmAreABug) {
  EXPECT_THROW(FlashSacPrograms(small_spec(), small_layout()), Failure);
}

}  // namespace
}  // namespace millrace

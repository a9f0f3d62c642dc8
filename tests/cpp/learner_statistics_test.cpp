// Tests for cpp/learner_statistics.cpp.
#include "learner_statistics.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(LearnerStatistics, FoldsFiniteUpdatesAndCountsTheOthers) {
  Workspace workspace;
  LearnerStatistics statistics(workspace, "test",
                               {{"mean", Fold::kSum}, {"top", Fold::kMax}, {"bottom", Fold::kMin}});
  const Operand finite = workspace.add_floats("finite", 1);
  workspace.allocate();
  statistics.clear();
  const StatisticsOp op = statistics.op(finite);
  const auto update = [&](float value, bool is_finite) {
    for (const char* name : {"mean", "top", "bottom"}) {
      *workspace.floats(statistics[name]) = value;
    }
    *workspace.floats(finite) = is_finite ? 1.0f : 0.0f;
    execute(op, CpuFrame{workspace, Arguments{}});
  };
  for (const float value : {-4.0f, -1.0f, -10.0f}) update(value, true);
  update(1e9f, false);
  EXPECT_EQ(statistics.left_out(), 1u);
  nlohmann::json taken;
  statistics.take(taken);
  EXPECT_EQ(taken["mean"], -5.0f);
  EXPECT_EQ(taken["top"], -1.0f);
  EXPECT_EQ(taken["bottom"], -10.0f);
  EXPECT_EQ(statistics.left_out(), 0u);
  nlohmann::json empty = nlohmann::json::object();
  statistics.take(empty);
  EXPECT_TRUE(empty.empty());
  EXPECT_THROW(statistics["unknown"], Failure);
}

}  // namespace
}  // namespace millrace

// Tests for cpp/learning_rate.cpp.
#include "learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace millrace {
namespace {

TEST(LearningRate, FallsAlongHalfACosineAndStays) {
  const LearningRateSchedule schedule = {3e-4f, 1000, 0.5f};
  EXPECT_EQ(schedule.at(0), 3e-4f);
  EXPECT_NEAR(schedule.at(500), 2.25e-4, 1e-10);
  EXPECT_NEAR(schedule.at(250), 1.5e-4 + 0.75e-4 * (1 + std::sqrt(0.5)), 1e-10);
  EXPECT_EQ(schedule.at(1000), 1.5e-4f);
  EXPECT_EQ(schedule.at(uint64_t{1} << 40), 1.5e-4f);
  for (uint64_t step = 1; step < 1000; ++step) EXPECT_LT(schedule.at(step), schedule.at(step - 1));
}

TEST(LearningRate, WithoutStepsItNeverMoves) {
  const LearningRateSchedule schedule = {3e-4f, 0, 0.5f};
  EXPECT_EQ(schedule.at(0), 3e-4f);
  EXPECT_EQ(schedule.at(1000000), 3e-4f);
}

}  // namespace
}  // namespace millrace

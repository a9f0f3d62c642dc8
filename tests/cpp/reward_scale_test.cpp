// Tests for cpp/reward_scale.cpp.
#include "reward_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace millrace {
namespace {

const RowLayout kLayout = {1, 1, 1};

// One tick of rows: {reward, done} of each environment.
std::vector<float> tick(const std::vector<std::pair<float, bool>>& outcomes) {
  std::vector<float> rows(outcomes.size() * static_cast<size_t>(kLayout.width()));
  for (size_t i = 0; i < outcomes.size(); ++i) {
    float* row = rows.data() + i * static_cast<size_t>(kLayout.width());
    row[kLayout.reward()] = outcomes[i].first;
    row[kLayout.done()] = outcomes[i].second ? 1.0f : 0.0f;
  }
  return rows;
}

void absorb(RewardScale& scale, const std::vector<std::pair<float, bool>>& outcomes) {
  scale.absorb(tick(outcomes).data(), outcomes.size(), kLayout.width(), kLayout);
}

// Episodes of three ticks of reward 1 at gamma 0.5. What G is after each tick, the last of an
// episode before it is cleared where that is so: told by the mean of one row at a time.
TEST(RewardScale, AnEpisodesReturnIsCountedAndThenCleared) {
  RewardScale scale(RewardScaling::kEpisode, 1, 0.5f, 5.0f);
  const double expected[] = {1, 1.5, 0, 1, 1.5, 0};  // 1.75 is counted, then cleared
  for (int t = 0; t < 6; ++t) {
    absorb(scale, {{1.0f, t % 3 == 2}});
    EXPECT_DOUBLE_EQ(scale.returns()[0], expected[t]) << t;
  }
  // 1.75 was the largest.
  EXPECT_NEAR(scale.factor(), 1 / std::max(std::sqrt(0.09722), 1.75 / 5), 2e-3);
}

TEST(RewardScale, AsPublishedATerminalRewardBeginsTheNextSum) {
  RewardScale scale(RewardScaling::kFlashSac, 1, 0.5f, 5.0f);
  const double expected[] = {1, 1.5, 1, 1.5, 1.75, 1};
  for (int t = 0; t < 6; ++t) {
    absorb(scale, {{1.0f, t % 3 == 2}});
    EXPECT_DOUBLE_EQ(scale.returns()[0], expected[t]) << t;
  }
}

TEST(RewardScale, IsTheLargerOfDeviationAndTheLargestReturnOverTheSupport) {
  RewardScale wide(RewardScaling::kEpisode, 2, 0.0f, 5.0f);
  for (int t = 0; t < 100000; ++t) absorb(wide, {{3.0f, false}, {-3.0f, false}});
  EXPECT_NEAR(wide.factor(), 1.0 / 3.0, 1e-5);  // deviation 3, largest 3 of 5
  RewardScale far(RewardScaling::kEpisode, 2, 0.0f, 5.0f);
  absorb(far, {{200.0f, false}, {0.0f, false}});
  for (int t = 0; t < 1000000; ++t) absorb(far, {{1.0f, false}, {1.0f, false}});
  EXPECT_NEAR(far.factor(), 5.0 / 200.0, 1e-6);  // never forgotten
}

// All returns at once, with what the statistics begin with as a part of them.
TEST(RewardScale, TheVarianceIsThatOfAllReturnsInWhateverTicks) {
  RewardScale scale(RewardScaling::kEpisode, 4, 0.9f, 1e9f);
  std::vector<double> sums(4, 0.0), all;
  for (int t = 0; t < 50; ++t) {
    std::vector<std::pair<float, bool>> outcomes;
    for (int i = 0; i < 4; ++i) {
      const float reward = static_cast<float>(std::sin(3.7 * t + i));
      outcomes.push_back({reward, (t + i) % 7 == 0});
      sums[i] = 0.9f * sums[i] + reward;
      all.push_back(sums[i]);
      if ((t + i) % 7 == 0) sums[i] = 0;
    }
    absorb(scale, outcomes);
  }
  const double first = 1e-4, count = static_cast<double>(all.size()) + first;
  double mean = 0, squares = first * 1.0;
  for (const double value : all) mean += value / count;
  squares += first * mean * mean;
  for (const double value : all) squares += (value - mean) * (value - mean);
  EXPECT_NEAR(scale.factor(), 1 / std::sqrt(squares / count + 1e-8), 1e-6);
}

TEST(RewardScale, OffIsOneAndHoldsNothing) {
  RewardScale scale(RewardScaling::kOff, 3, 0.9f, 5.0f);
  absorb(scale, {{100.0f, false}, {100.0f, false}, {100.0f, false}});
  EXPECT_EQ(scale.factor(), 1.0f);
  StateRegistry registry;
  scale.register_state(registry);
  EXPECT_TRUE(registry.tensors().empty());
}

TEST(RewardScale, ARewardThatIsNotFiniteIsLeftOut) {
  RewardScale scale(RewardScaling::kEpisode, 2, 0.5f, 5.0f);
  absorb(scale, {{1.0f, false}, {1.0f, false}});
  const float before = scale.factor();
  absorb(scale, {{NAN, false}, {INFINITY, false}});
  EXPECT_EQ(scale.factor(), before);
  EXPECT_DOUBLE_EQ(scale.returns()[0], 1.0);
}

TEST(RewardScale, GoesOnFromACheckpoint) {
  RewardScale whole(RewardScaling::kEpisode, 2, 0.9f, 5.0f);
  RewardScale resumed(RewardScaling::kEpisode, 2, 0.9f, 5.0f);
  const auto run = [](RewardScale& scale, int from, int to) {
    for (int t = from; t < to; ++t) {
      absorb(scale, {{static_cast<float>(std::cos(t)), t % 5 == 4}, {2.0f, t % 7 == 6}});
    }
  };
  run(whole, 0, 9);
  StateRegistry from, to;
  whole.register_state(from);
  resumed.register_state(to);
  for (size_t i = 0; i < to.tensors().size(); ++i) {
    std::memcpy(to.tensors()[i].data, from.tensors()[i].data, to.tensors()[i].bytes());
  }
  run(whole, 9, 30);
  run(resumed, 9, 30);
  EXPECT_EQ(whole.factor(), resumed.factor());
  EXPECT_EQ(whole.returns(), resumed.returns());
}

TEST(RewardScale, PartsOfATickAreABug) {
  RewardScale scale(RewardScaling::kEpisode, 2, 0.9f, 5.0f);
  EXPECT_THROW(absorb(scale, {{1.0f, false}}), Failure);
}

}  // namespace
}  // namespace millrace

// Tests for cpp/reward_scale.cpp.
#include "reward_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace millrace {
namespace {

LearnerSpec spec_of(RewardScaling scaling, float gamma, float support = 5.0f) {
  LearnerSpec spec{};
  spec.reward_scaling = scaling;
  spec.gamma = gamma;
  spec.v_min = -support;
  spec.v_max = 0.5f * support;
  return spec;
}

// One tick: {reward, done} of each environment.
void absorb(RewardScale& scale, const std::vector<std::pair<float, bool>>& outcomes) {
  std::vector<float> rewards;
  std::vector<int> done;
  for (const auto& [reward, is_done] : outcomes) {
    rewards.push_back(reward);
    done.push_back(is_done ? 1 : 0);
  }
  StateView state{};
  state.episode[kReward] = {rewards.data(), 1, 1, 1};
  state.counter[kDone] = {done.data(), 1};
  scale.absorb(state);
}

// Episodes of three ticks of reward 1 at gamma 0.5. What G is after each tick, the last of an
// episode before it is cleared where that is so: told by the mean of one row at a time.
TEST(RewardScale, AnEpisodesReturnIsCountedAndThenCleared) {
  RewardScale scale(spec_of(RewardScaling::kEpisode, 0.5f, 5.0f), 1);
  const double expected[] = {1, 1.5, 0, 1, 1.5, 0};  // 1.75 is counted, then cleared
  for (int t = 0; t < 6; ++t) {
    absorb(scale, {{1.0f, t % 3 == 2}});
    EXPECT_DOUBLE_EQ(scale.returns()[0], expected[t]) << t;
  }
  // 1.75 was the largest.
  EXPECT_NEAR(scale.factor(), 1 / std::max(std::sqrt(0.09722), 1.75 / 5), 2e-3);
}

TEST(RewardScale, AsPublishedATerminalRewardBeginsTheNextSum) {
  RewardScale scale(spec_of(RewardScaling::kFlashSac, 0.5f, 5.0f), 1);
  const double expected[] = {1, 1.5, 1, 1.5, 1.75, 1};
  for (int t = 0; t < 6; ++t) {
    absorb(scale, {{1.0f, t % 3 == 2}});
    EXPECT_DOUBLE_EQ(scale.returns()[0], expected[t]) << t;
  }
}

TEST(RewardScale, IsTheLargerOfDeviationAndTheLargestReturnOverTheSupport) {
  RewardScale wide(spec_of(RewardScaling::kEpisode, 0.0f, 5.0f), 2);
  for (int t = 0; t < 100000; ++t) absorb(wide, {{3.0f, false}, {-3.0f, false}});
  EXPECT_NEAR(wide.factor(), 1.0 / 3.0, 1e-5);  // deviation 3, largest 3 of 5
  RewardScale far(spec_of(RewardScaling::kEpisode, 0.0f, 5.0f), 2);
  absorb(far, {{200.0f, false}, {0.0f, false}});
  for (int t = 0; t < 1000000; ++t) absorb(far, {{1.0f, false}, {1.0f, false}});
  EXPECT_NEAR(far.factor(), 5.0 / 200.0, 1e-6);  // never forgotten
}

// All returns at once, with what the statistics begin with as a part of them.
TEST(RewardScale, TheVarianceIsThatOfAllReturnsInWhateverTicks) {
  RewardScale scale(spec_of(RewardScaling::kEpisode, 0.9f, 1e9f), 4);
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

TEST(RewardScale, ARewardThatIsNotFiniteIsLeftOut) {
  RewardScale scale(spec_of(RewardScaling::kEpisode, 0.5f, 5.0f), 2);
  absorb(scale, {{1.0f, false}, {1.0f, false}});
  const float before = scale.factor();
  absorb(scale, {{NAN, false}, {INFINITY, false}});
  EXPECT_EQ(scale.factor(), before);
  EXPECT_DOUBLE_EQ(scale.returns()[0], 1.0);
}

TEST(RewardScale, GoesOnFromACheckpoint) {
  RewardScale whole(spec_of(RewardScaling::kEpisode, 0.9f, 5.0f), 2);
  RewardScale resumed(spec_of(RewardScaling::kEpisode, 0.9f, 5.0f), 2);
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
  resumed.state_restored();
  EXPECT_EQ(whole.factor(), resumed.factor());
  run(whole, 9, 30);
  run(resumed, 9, 30);
  EXPECT_EQ(whole.factor(), resumed.factor());
  EXPECT_EQ(whole.returns(), resumed.returns());
}

}  // namespace
}  // namespace millrace

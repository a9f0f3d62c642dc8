// Statistics of what the update step draws, over a million numbers of fixed seeds: mean, variance,
// and no correlation between neighbours in environment, tick and index. Bounds are five standard
// deviations of the estimate, so that only a broken generator fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "update_body.h"

namespace millrace {
namespace {

constexpr int kEnvs = 128, kTicks = 128, kDim = 64;  // 2^20 numbers
constexpr double kCount = double{kEnvs} * kTicks * kDim;
constexpr double kSigmas = 5;

// By environment, tick and index.
class Cube {
 public:
  explicit Cube(const std::function<void(int env, int tick, float* values)>& draw)
      : values_(static_cast<size_t>(kCount)) {
    for (int env = 0; env < kEnvs; ++env) {
      for (int tick = 0; tick < kTicks; ++tick) draw(env, tick, &values_[offset(env, tick)]);
    }
  }

  double mean() const {
    double sum = 0;
    for (const float value : values_) sum += double{value};
    return sum / kCount;
  }
  // The mean of (value - mean)^power.
  double moment(int power) const {
    const double middle = mean();
    double sum = 0;
    for (const float value : values_) sum += std::pow(double{value} - middle, power);
    return sum / kCount;
  }
  // With the value so many environments, ticks and indices further; in standard deviations of what
  // independent values would give.
  double correlation(int envs, int ticks, int indices) const {
    const double middle = mean(), variance = moment(2);
    double sum = 0, count = 0;
    for (int env = 0; env + envs < kEnvs; ++env) {
      for (int tick = 0; tick + ticks < kTicks; ++tick) {
        const float* here = &values_[offset(env, tick)];
        const float* there = &values_[offset(env + envs, tick + ticks)];
        for (int i = 0; i + indices < kDim; ++i, ++count) {
          sum += (double{here[i]} - middle) * (double{there[i + indices]} - middle);
        }
      }
    }
    return sum / count / variance * std::sqrt(count);
  }
  float smallest() const { return *std::min_element(values_.begin(), values_.end()); }
  float largest() const { return *std::max_element(values_.begin(), values_.end()); }

 private:
  static size_t offset(int env, int tick) {
    return static_cast<size_t>((env * kTicks + tick) * kDim);
  }

  std::vector<float> values_;
};

void expect_mean_and_variance(const Cube& cube, double variance, double fourth_moment) {
  EXPECT_LT(std::abs(cube.mean()), kSigmas * std::sqrt(variance / kCount));
  const double spread = std::sqrt((fourth_moment - variance * variance) / kCount);
  EXPECT_LT(std::abs(cube.moment(2) - variance), kSigmas * spread);
}

void expect_independent(const Cube& cube) {
  EXPECT_LT(std::abs(cube.correlation(1, 0, 0)), kSigmas) << "neighbours in environment";
  EXPECT_LT(std::abs(cube.correlation(0, 1, 0)), kSigmas) << "neighbours in tick";
  EXPECT_LT(std::abs(cube.correlation(0, 0, 1)), kSigmas) << "neighbours in index";
  EXPECT_LT(std::abs(cube.correlation(0, 0, 4)), kSigmas) << "neighbours in block";
  EXPECT_LT(std::abs(cube.correlation(1, 1, 0)), kSigmas) << "in environment and tick";
}

// The noise of an observation whose clean value is 0, through the production path.
Cube observation_noise() {
  ObservationLayout layout = {};
  layout.count = 1;
  layout.dim = kDim;
  layout.slot[0] = {kObserveJointVelocity, 0, kDim, 1.0f, 1.0f};
  std::vector<float> zeros(kDim);
  StateView state = {};
  state.sim[kJointVelocity] = {zeros.data(), kDim, 1, 0};
  return Cube([&](int env, int tick, float* values) {
    observe(SoloTeam(), layout, TermConstants{}, state, {11, static_cast<u64>(tick), 1.0f}, env, 0,
            single_row(values, kDim));
  });
}

TEST(NoiseStatistics, ObservationNoiseIsUniformAndIndependent) {
  const Cube noise = observation_noise();
  expect_mean_and_variance(noise, 1.0 / 3, 1.0 / 5);
  expect_independent(noise);
  EXPECT_GE(noise.smallest(), -1.0f);
  EXPECT_LT(noise.largest(), 1.0f);
  EXPECT_LT(noise.smallest(), -0.9999f);
  EXPECT_GT(noise.largest(), 0.9999f);
}

TEST(NoiseStatistics, NormalDrawsAreNormalAndIndependent) {
  const Cube normal([](int env, int tick, float* values) {
    const RandomSource source =
        random_source(12, kStreamExploration, static_cast<u32>(env), static_cast<u64>(tick));
    for (u32 i = 0; i < kDim; ++i) values[i] = random_normal(source, i);
  });
  expect_mean_and_variance(normal, 1, 3);
  expect_independent(normal);
  EXPECT_LT(std::abs(normal.moment(3)), kSigmas * std::sqrt(15 / kCount));      // skewness
  EXPECT_LT(std::abs(normal.moment(4) - 3), kSigmas * std::sqrt(96 / kCount));  // kurtosis
}

// The test itself: a generator that forgets its tick, its environment or its index is found.
TEST(NoiseStatistics, AGeneratorThatForgetsIsFound) {
  const auto forgetful = [](bool env_counts, bool tick_counts, bool index_counts) {
    return Cube([=](int env, int tick, float* values) {
      const RandomSource source =
          random_source(13, kStreamExploration, env_counts ? static_cast<u32>(env) : 0,
                        tick_counts ? static_cast<u64>(tick) : 0);
      for (u32 i = 0; i < kDim; ++i) {
        values[i] = random_uniform(source, index_counts ? i : 0, -1.0f, 1.0f);
      }
    });
  };
  EXPECT_GT(forgetful(false, true, true).correlation(1, 0, 0), kSigmas);
  EXPECT_GT(forgetful(true, false, true).correlation(0, 1, 0), kSigmas);
  EXPECT_GT(forgetful(true, true, false).correlation(0, 0, 1), kSigmas);
}

}  // namespace
}  // namespace millrace

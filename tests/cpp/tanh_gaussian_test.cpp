// Tests for cpp/tanh_gaussian.cpp. The gradient is tested with the whole update in
// learner_fastsac_test.cpp.
#include "tanh_gaussian.h"

#include <gtest/gtest.h>

#include <cmath>

namespace millrace {
namespace {

TEST(FillNormals, AreRandomNormalsBitForBit) {
  for (const int rows : {1, 16, 37}) {
    for (const int columns : {1, 2, 29}) {
      for (const u32 first : {0u, 1u, 29u}) {
        const RandomSource source = random_source(99, kStreamLearnerNoise, 3, 0x123456789Aull);
        std::vector<float> normals(rows * columns);
        fill_normals(source, nullptr, first, rows, columns, normals.data());
        for (int r = 0; r < rows; ++r) {
          const RandomSource row = random_source(99, kStreamLearnerNoise, 3 + r, 0x123456789Aull);
          for (int i = 0; i < columns; ++i) {
            ASSERT_EQ(normals[r * columns + i], random_normal(row, first + i));
          }
        }
      }
    }
  }
}

struct SampleFixture {
  static constexpr int kActions = 5;
  Workspace workspace;
  SampleActionOp op{};

  explicit SampleFixture(int rows) {
    op.rows = rows;
    op.actions = kActions;
    op.heads_stride = 2 * kActions;
    op.heads = workspace.add_floats("heads", rows * 2 * kActions);
    op.bias = workspace.add_floats("bias", 2 * kActions);
    op.noise = workspace.add_floats("noise", rows * kActions);
    op.action = workspace.add_floats("action", rows * kActions);
    op.action_stride = kActions;
    op.log_probability = workspace.add_floats("log_probability", rows);
    op.stream = kStreamExploration;
    workspace.allocate();
  }
  void run() {
    Arguments arguments{};
    arguments.seed = 4;
    execute(op, CpuFrame{workspace, arguments});
  }
};

TEST(SampleAction, LogProbabilityIsThatOfTheDensityWhereTanhRoundsToOneToo) {
  SampleFixture fixture(1);
  float* heads = fixture.workspace.floats(fixture.op.heads);
  const float means[] = {0.0f, 0.5f, -3.0f, 9.9f, -50.0f};
  const float raws[] = {0.0f, 3.0f, -3.0f, 0.3f, 1.0f};
  double expected = 0;
  std::copy(means, means + 5, heads);
  std::copy(raws, raws + 5, heads + 5);
  fixture.run();
  for (int i = 0; i < 5; ++i) {
    const double noise = random_normal(random_source(4, kStreamExploration, 0, 0), i);
    const double log_std = -5 + 2.5 * (std::tanh(double{raws[i]}) + 1);
    const double mean = std::max(-10.0, std::min(10.0, double{means[i]}));
    const double a = std::tanh(mean + std::exp(log_std) * noise);
    EXPECT_NEAR(fixture.workspace.floats(fixture.op.action)[i], a, 1e-6);
    expected +=
        -0.5 * noise * noise - log_std - 0.5 * std::log(2 * M_PI) - std::log(1 - a * a + 1e-6);
  }
  EXPECT_NEAR(*fixture.workspace.floats(fixture.op.log_probability), expected, 1e-4);
}

TEST(SampleAction, InitialDeviationIsExpOfMinusTwoAndAHalf) {
  SampleFixture fixture(4000);
  fixture.run();
  double squares = 0;
  for (int i = 0; i < 4000 * 5; ++i) {
    const double a = std::atanh(fixture.workspace.floats(fixture.op.action)[i]);
    squares += a * a / (4000 * 5);
  }
  EXPECT_NEAR(std::sqrt(squares), std::exp(-2.5), 0.002);
}

// FlashSAC's: no clamp of the mean, and no 1e-6.
TEST(SampleAction, TheExactDensityHoldsWhereTanhRoundsToOne) {
  SampleFixture fixture(1);
  fixture.op.density = kFlashSacDensity;
  float* heads = fixture.workspace.floats(fixture.op.heads);
  const float means[] = {0.0f, 0.5f, -30.0f, 12.0f, 60.0f};
  const float raws[] = {0.0f, 3.0f, -3.0f, 0.3f, 1.0f};
  std::copy(means, means + 5, heads);
  std::copy(raws, raws + 5, heads + 5);
  fixture.run();
  double expected = 0;
  for (int i = 0; i < 5; ++i) {
    const double noise = random_normal(random_source(4, kStreamExploration, 0, 0), i);
    const double log_std = -10 + 6 * (std::tanh(double{raws[i]}) + 1);
    const double x = means[i] + std::exp(log_std) * noise;
    const double log_det =
        2 * (std::log(2.0) - std::abs(x) - std::log1p(std::exp(-2 * std::abs(x))));
    EXPECT_NEAR(fixture.workspace.floats(fixture.op.action)[i], std::tanh(x), 1e-6);
    expected += -0.5 * noise * noise - log_std - 0.5 * std::log(2 * M_PI) - log_det;
  }
  EXPECT_NEAR(*fixture.workspace.floats(fixture.op.log_probability), expected, 2e-4);
}

// As if that tick were now, whatever the arguments say.
TEST(SampleAction, ARowMayTakeTheDrawOfItsOwnTick) {
  SampleFixture now(3);
  now.run();
  SampleFixture kept(3);
  Workspace workspace;
  kept.op.heads = workspace.add_floats("heads", 30);
  kept.op.bias = workspace.add_floats("bias", 10);
  kept.op.noise = workspace.add_floats("noise", 15);
  kept.op.action = workspace.add_floats("action", 15);
  kept.op.log_probability = workspace.add_floats("log_probability", 3);
  kept.op.drawn_at = workspace.add("drawn_at", DType::kU64, 3);
  workspace.allocate();
  workspace.counters(kept.op.drawn_at)[1] = 7;
  Arguments arguments{};
  arguments.seed = 4;
  arguments.tick = 9;
  execute(kept.op, CpuFrame{workspace, arguments});
  for (int i = 0; i < 5; ++i) {
    const float* noise = workspace.floats(kept.op.noise);
    EXPECT_EQ(noise[i], now.workspace.floats(now.op.noise)[i]);
    EXPECT_EQ(noise[5 + i], random_normal(random_source(4, kStreamExploration, 1, 7), i));
    EXPECT_EQ(noise[10 + i], now.workspace.floats(now.op.noise)[10 + i]);
  }
}

TEST(SampleAction, DeterministicIsTanhOfTheMean) {
  SampleFixture fixture(2);
  fixture.op.deterministic = true;
  fixture.workspace.floats(fixture.op.heads)[1] = 0.7f;
  fixture.workspace.floats(fixture.op.bias)[1] = 0.1f;
  fixture.run();
  EXPECT_NEAR(fixture.workspace.floats(fixture.op.action)[1], std::tanh(0.8), 1e-6);
  EXPECT_EQ(fixture.workspace.floats(fixture.op.action)[0], 0.0f);
}

}  // namespace
}  // namespace millrace

// Tests for cpp/tanh_gaussian_body.h: a team of any size computes what tanh_gaussian.cpp does.
#include "tanh_gaussian_body.h"

#include <gtest/gtest.h>

#include "lane_team.h"
#include "tanh_gaussian.h"

namespace millrace {
namespace {

constexpr int kActions = 29;

std::vector<float> normals(u32 which, int count, float scale) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] =
        scale * random_normal(random_source(1, kStreamEvent, which, 0), static_cast<u32>(i));
  }
  return values;
}

TEST(TanhGaussianBody, NoiseHasTheBitsOfTheCpus) {
  constexpr u32 kFirst = 29;
  const RandomSource source = random_source(5, kStreamLearnerNoise, 0, uint64_t{1} << 40);
  std::vector<float> expected(3 * kActions), found(expected);
  fill_normals(source, nullptr, kFirst, 3, kActions, expected.data());
  run_team(4, [&](const LaneTeam& team) {
    for (u32 r = 0; r < 3; ++r) {
      RandomSource of_row = source;
      of_row.environment = r;
      draw_noise_row(team, of_row, kFirst, found.data() + r * kActions, kActions);
    }
  });
  EXPECT_EQ(found, expected);
}

TEST(TanhGaussianBody, ActionsAndTheirGradientsAreTheCpus) {
  const std::vector<float> heads = normals(1, 2 * kActions, 6), bias = normals(2, 2 * kActions, 1);
  const std::vector<float> noise = normals(3, kActions, 1), above = normals(4, kActions, 1);
  Workspace workspace;
  SampleActionOp sample{};
  sample.rows = 1;
  sample.actions = sample.action_stride = kActions;
  sample.heads_stride = 2 * kActions;
  sample.deterministic = true;
  sample.heads = workspace.add_floats("heads", 2 * kActions);
  sample.bias = workspace.add_floats("bias", 2 * kActions);
  sample.noise = workspace.add_floats("noise", kActions);
  sample.action = workspace.add_floats("action", kActions);
  sample.log_probability = workspace.add_floats("log_probability", 1);
  ActionGradientOp gradient{};
  gradient.action_gradient_stride = kActions;
  gradient.rows = 1;
  gradient.actions = gradient.action_gradient_stride = kActions;
  gradient.heads_stride = 2 * kActions;
  gradient.heads = sample.heads;
  gradient.bias = sample.bias;
  gradient.noise = sample.noise;
  gradient.action_gradient = workspace.add_floats("above", kActions);
  gradient.log_alpha = workspace.add_floats("log_alpha", 1);
  gradient.heads_gradient = workspace.add_floats("heads_gradient", 2 * kActions);
  MeanDeviationOp deviation{};
  deviation.rows = 1;
  deviation.actions = kActions;
  deviation.heads_stride = 2 * kActions;
  deviation.heads = sample.heads;
  deviation.bias = sample.bias;
  deviation.mean_deviation = workspace.add_floats("mean_deviation", 1);
  workspace.allocate();
  std::copy(heads.begin(), heads.end(), workspace.floats(sample.heads));
  std::copy(bias.begin(), bias.end(), workspace.floats(sample.bias));
  std::copy(noise.begin(), noise.end(), workspace.floats(sample.noise));
  std::copy(above.begin(), above.end(), workspace.floats(gradient.action_gradient));
  const Arguments arguments{};
  const CpuFrame frame{workspace, arguments};
  execute(sample, frame);
  execute(gradient, frame);
  execute(deviation, frame);
  for (const int lanes : {1, 4, 32}) {
    std::vector<float> action(kActions), heads_gradient(2 * kActions);
    float log_probability = 0, deviations = 0;
    run_team(lanes, [&](const LaneTeam& team) {
      const float log = sample_action_row<false>(team, kFastSacDensity, heads.data(), bias.data(),
                                                 noise.data(), action.data(), kActions);
      action_gradient_row<false>(team, kFastSacDensity, heads.data(), bias.data(), noise.data(),
                                 above.data(), 1.0f, heads_gradient.data(), kActions);
      const float sum =
          deviations_of_row(team, kFastSacDensity, heads.data(), bias.data(), kActions);
      if (team.leads()) {
        log_probability = log;
        deviations = sum;
      }
    });
    EXPECT_NEAR(log_probability, *workspace.floats(sample.log_probability), 1e-4f);
    EXPECT_NEAR(deviations / kActions, *workspace.floats(deviation.mean_deviation), 1e-6f);
    for (size_t i = 0; i < kActions; ++i) {
      ASSERT_EQ(action[i], workspace.floats(sample.action)[i]) << i;
    }
    for (size_t i = 0; i < 2 * kActions; ++i) {
      ASSERT_EQ(heads_gradient[i], workspace.floats(gradient.heads_gradient)[i]) << i;
    }
  }
}

}  // namespace
}  // namespace millrace

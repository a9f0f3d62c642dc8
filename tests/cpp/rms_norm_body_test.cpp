// Tests for cpp/rms_norm_body.h: a team of any number of lanes computes what the CPU's op does.
#include "rms_norm_body.h"

#include <gtest/gtest.h>

#include <vector>

#include "lane_team.h"
#include "philox.h"
#include "rms_norm.h"

namespace millrace {
namespace {

constexpr int kWidth = 37;
constexpr int kOwn = 64;

std::vector<float> normals(u32 environment) {
  std::vector<float> values(kWidth);
  for (int i = 0; i < kWidth; ++i) {
    values[static_cast<size_t>(i)] =
        random_normal(random_source(2, kStreamEvent, environment, 0), static_cast<u32>(i));
  }
  return values;
}

TEST(RmsNormBody, EveryTeamComputesTheRowOfTheCpu) {
  const std::vector<float> x = normals(0), gain = normals(1), gradient = normals(2);
  Workspace workspace;
  RmsNormForwardOp forward{1, 1, kWidth, {}, {}, {}, {}};
  forward.input = workspace.add_floats("input", kWidth);
  forward.gain = workspace.add_floats("gain", kWidth);
  forward.inverse_rms = workspace.add_floats("inverse_rms", 1);
  forward.output = workspace.add_floats("output", kWidth);
  RmsNormBackwardOp backward{1,  1, kWidth, {}, forward.input, forward.inverse_rms, forward.gain,
                             {}, {}};
  backward.gradient = workspace.add_floats("gradient", kWidth);
  backward.input_gradient = workspace.add_floats("input_gradient", kWidth);
  backward.gain_gradient = workspace.add_floats("gain_gradient", kWidth);
  workspace.allocate();
  std::copy(x.begin(), x.end(), workspace.floats(forward.input));
  std::copy(gain.begin(), gain.end(), workspace.floats(forward.gain));
  std::copy(gradient.begin(), gradient.end(), workspace.floats(backward.gradient));
  const Arguments arguments{};
  execute(forward, {workspace, arguments});
  execute(backward, {workspace, arguments});
  for (const int lanes : {1, 4, 32}) {
    std::vector<float> output(kWidth), input_gradient(kWidth), gain_gradient(kWidth);
    float inverse = 0;
    run_team(lanes, [&](const LaneTeam& team) {
      float own_gain[kOwn] = {}, own_x[kOwn] = {}, own_gradient[kOwn] = {}, sums[kOwn] = {};
      read_own_columns(team, gain.data(), kWidth, own_gain);
      read_own_columns(team, x.data(), kWidth, own_x);
      read_own_columns(team, gradient.data(), kWidth, own_gradient);
      float own_output[kOwn];
      std::copy(own_x, own_x + kOwn, own_output);
      const float found = rms_norm_row(team, own_gain, own_output, kWidth);
      rms_norm_gradient_row(team, own_gain, own_x, own_gradient, found, kWidth, sums);
      each_own_column<kOwn>(team, kWidth, [&](int own, int column) {
        const size_t at = static_cast<size_t>(column);
        output[at] = own_output[own];
        input_gradient[at] = own_gradient[own];
        gain_gradient[at] = sums[own];
      });
      if (team.leads()) inverse = found;
    });
    EXPECT_NEAR(inverse, *workspace.floats(forward.inverse_rms), 1e-6f);
    for (size_t i = 0; i < kWidth; ++i) {
      ASSERT_NEAR(output[i], workspace.floats(forward.output)[i], 1e-5f) << i;
      ASSERT_NEAR(input_gradient[i], workspace.floats(backward.input_gradient)[i], 1e-5f) << i;
      ASSERT_NEAR(gain_gradient[i], workspace.floats(backward.gain_gradient)[i], 1e-5f) << i;
    }
  }
}

}  // namespace
}  // namespace millrace

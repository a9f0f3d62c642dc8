// Tests for cpp/dense_layer_body.h: a team of any size computes what dense_layer.cpp does.
#include "dense_layer_body.h"

#include <gtest/gtest.h>

#include "dense_layer.h"
#include "lane_team.h"
#include "philox.h"

namespace millrace {
namespace {

constexpr int kRows = 3, kWidth = 37;

LayerParameters<kWidth> own_parameters(const LaneTeam& team, const std::vector<float>& bias,
                                       const std::vector<float>& gain,
                                       const std::vector<float>& shift) {
  LayerParameters<kWidth> parameters{};
  each_own_column<kWidth>(team, kWidth, [&](int own, int column) {
    const size_t at = static_cast<size_t>(column);
    parameters.bias[own] = bias[at];
    parameters.gain[own] = gain[at];
    parameters.shift[own] = shift[at];
  });
  return parameters;
}

void write_own_columns(const LaneTeam& team, const float (&own)[kWidth], std::vector<float>& rows,
                       size_t row) {
  each_own_column<kWidth>(team, kWidth, [&](int at, int column) {
    rows[row * kWidth + static_cast<size_t>(column)] = own[at];
  });
}

std::vector<float> normals(u32 which, int count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] =
        random_normal(random_source(1, kStreamEvent, which, 0), static_cast<u32>(i));
  }
  return values;
}

Operand add(Workspace& workspace, const std::string& name, int count) {
  return workspace.add_floats(name, static_cast<uint64_t>(count));
}

void set(const Workspace& workspace, Operand to, const std::vector<float>& values) {
  std::copy(values.begin(), values.end(), workspace.floats(to));
}

void expect_near(const float* expected, const std::vector<float>& found, const char* what) {
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], 2e-5f) << what << " " << i;
  }
}

// How many lanes, and whether by the rough functions, which here round as little as the others.
constexpr struct {
  int lanes;
  bool is_rough;
} kWays[] = {{1, false}, {4, false}, {32, false}, {1, true}, {4, true}, {32, true}};

// As the rough functions want them.
LayerParameters<kWidth> halved(LayerParameters<kWidth> parameters) {
  for (float& gain : parameters.gain) gain *= 0.5f;
  for (float& shift : parameters.shift) shift *= 0.5f;
  return parameters;
}

template <bool kHasSums>
void backward_row(bool is_rough, const LaneTeam& team, const LayerParameters<kWidth>& parameters,
                  const LayerNorm& norm, float (&row)[kWidth], float (&own)[kWidth],
                  LayerSums<kWidth>& sums) {
  if (is_rough) {
    layer_backward_row_rough<kHasSums>(team, halved(parameters), norm, row, own, kWidth, sums);
  } else {
    layer_backward_row<kHasSums>(team, parameters, norm, row, own, kWidth, sums);
  }
}

TEST(DenseLayerBody, ForwardRowsAreTheCpus) {
  Workspace workspace;
  LayerForwardOp op{};
  op.rows = kRows;
  op.groups = 1;
  op.width = kWidth;
  op.linear = add(workspace, "linear", kRows * kWidth);
  op.bias = add(workspace, "bias", kWidth);
  op.gain = add(workspace, "gain", kWidth);
  op.shift = add(workspace, "shift", kWidth);
  op.mean = add(workspace, "mean", kRows);
  op.inverse_deviation = add(workspace, "inverse_deviation", kRows);
  op.output = add(workspace, "output", kRows * kWidth);
  workspace.allocate();
  const std::vector<float> linear = normals(0, kRows * kWidth), bias = normals(1, kWidth);
  const std::vector<float> gain = normals(2, kWidth), shift = normals(3, kWidth);
  set(workspace, op.linear, linear);
  set(workspace, op.bias, bias);
  set(workspace, op.gain, gain);
  set(workspace, op.shift, shift);
  execute(op, CpuFrame{workspace, Arguments{}});
  for (const auto [lanes, is_rough] : kWays) {
    std::vector<float> output(linear.size()), mean(kRows), inverse_deviation(kRows);
    run_team(lanes, [&](const LaneTeam& team) {
      const LayerParameters<kWidth> parameters = own_parameters(team, bias, gain, shift);
      for (size_t r = 0; r < kRows; ++r) {
        float own[kWidth];
        read_own_columns(team, linear.data() + r * kWidth, kWidth, own);
        const LayerNorm norm = is_rough
                                   ? layer_forward_row_rough(team, halved(parameters), own, kWidth)
                                   : layer_forward_row(team, parameters, own, kWidth);
        write_own_columns(team, own, output, r);
        if (!team.leads()) continue;
        mean[r] = norm.mean;
        inverse_deviation[r] = norm.inverse_deviation;
      }
    });
    expect_near(workspace.floats(op.output), output, "output");
    expect_near(workspace.floats(op.mean), mean, "mean");
    expect_near(workspace.floats(op.inverse_deviation), inverse_deviation, "inverse deviation");
  }
}

TEST(DenseLayerBody, BackwardRowsAndTheirSumsAreTheCpus) {
  Workspace workspace;
  LayerBackwardOp op{};
  op.rows = kRows;
  op.groups = 1;
  op.width = kWidth;
  op.gradient = add(workspace, "gradient", kRows * kWidth);
  op.linear = add(workspace, "linear", kRows * kWidth);
  op.mean = add(workspace, "mean", kRows);
  op.inverse_deviation = add(workspace, "inverse_deviation", kRows);
  op.bias = add(workspace, "bias", kWidth);
  op.gain = add(workspace, "gain", kWidth);
  op.shift = add(workspace, "shift", kWidth);
  op.gain_gradient = add(workspace, "gain_gradient", kWidth);
  op.shift_gradient = add(workspace, "shift_gradient", kWidth);
  op.bias_gradient = add(workspace, "bias_gradient", kWidth);
  workspace.allocate();
  const std::vector<float> before = normals(0, kRows * kWidth);
  const std::vector<float> linear = normals(1, kRows * kWidth), gain = normals(2, kWidth);
  const std::vector<float> shift = normals(3, kWidth), bias = normals(4, kWidth);
  const std::vector<float> mean = {-0.3f, 0, 0.2f}, inverse_deviation = {0.5f, 1, 2};
  set(workspace, op.gradient, before);
  set(workspace, op.linear, linear);
  set(workspace, op.mean, mean);
  set(workspace, op.bias, bias);
  set(workspace, op.inverse_deviation, inverse_deviation);
  set(workspace, op.gain, gain);
  set(workspace, op.shift, shift);
  execute(op, CpuFrame{workspace, Arguments{}});
  for (const auto [lanes, is_rough] : kWays) {
    std::vector<float> gradient(before.size()), without_sums(before.size());
    std::vector<float> gains(kWidth), shifts(kWidth), biases(kWidth);
    run_team(lanes, [&](const LaneTeam& team) {
      const LayerParameters<kWidth> parameters = own_parameters(team, bias, gain, shift);
      LayerSums<kWidth> sums, untouched;
      for (size_t r = 0; r < kRows; ++r) {
        const LayerNorm norm = {mean[r], inverse_deviation[r]};
        float row[kWidth], own[kWidth];
        read_own_columns(team, linear.data() + r * kWidth, kWidth, row);
        read_own_columns(team, before.data() + r * kWidth, kWidth, own);
        backward_row<true>(is_rough, team, parameters, norm, row, own, sums);
        write_own_columns(team, own, gradient, r);
        read_own_columns(team, linear.data() + r * kWidth, kWidth, row);
        read_own_columns(team, before.data() + r * kWidth, kWidth, own);
        backward_row<false>(is_rough, team, parameters, norm, row, own, untouched);
        write_own_columns(team, own, without_sums, r);
      }
      each_own_column<kWidth>(team, kWidth, [&](int own, int column) {
        const size_t at = static_cast<size_t>(column);
        const float share = is_rough ? 0.5f : 1.0f;
        gains[at] = share * sums.gain[own];
        shifts[at] = share * sums.shift[own];
        biases[at] = sums.bias[own];
      });
    });
    expect_near(workspace.floats(op.gradient), gradient, "gradient");
    expect_near(workspace.floats(op.gradient), without_sums, "gradient without sums");
    expect_near(workspace.floats(op.gain_gradient), gains, "gain");
    expect_near(workspace.floats(op.shift_gradient), shifts, "shift");
    expect_near(workspace.floats(op.bias_gradient), biases, "bias");
  }
}

}  // namespace
}  // namespace millrace

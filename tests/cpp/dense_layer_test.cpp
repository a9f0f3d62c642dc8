// Tests for cpp/dense_layer.cpp. Gradients are tested with the whole update in
// learner_fastsac_test.cpp.
#include "dense_layer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "philox.h"
#include "program_cpu.h"

namespace millrace {
namespace {

TEST(LayerForward, IsSiluOfTheNormalisedSumAtAnyWidth) {
  for (const int width : {1, 4, 16, 37, 256}) {
    constexpr int kRows = 3, kGroups = 2;
    Workspace workspace;
    LayerForwardOp op{};
    op.rows = kRows;
    op.groups = kGroups;
    op.width = width;
    op.linear = workspace.add_floats("linear", kRows * kGroups * width);
    op.bias = workspace.add_floats("bias", kGroups * width);
    op.gain = workspace.add_floats("gain", kGroups * width);
    op.shift = workspace.add_floats("shift", kGroups * width);
    op.mean = workspace.add_floats("mean", kRows * kGroups);
    op.inverse_deviation = workspace.add_floats("inverse_deviation", kRows * kGroups);
    op.output = workspace.add_floats("output", kRows * kGroups * width);
    workspace.allocate();
    u32 number = 0;
    for (const Operand operand : {op.linear, op.bias, op.gain, op.shift}) {
      const uint64_t count = workspace.carriers()[operand.carrier].count;
      for (uint64_t i = 0; i < count; ++i) {
        workspace.floats(operand)[i] =
            3.0f * random_normal(random_source(1, kStreamEvent, 0, 0), number++);
      }
    }
    const std::vector<float> x(workspace.floats(op.linear),
                               workspace.floats(op.linear) + kRows * kGroups * width);
    execute(op, CpuFrame{workspace, Arguments{}});
    for (int row = 0; row < kRows * kGroups; ++row) {
      const int group = row % kGroups * width;
      std::vector<double> y(width);
      double mean = 0, variance = 0;
      for (int i = 0; i < width; ++i) {
        y[i] = double{x[row * width + i]} + workspace.floats(op.bias)[group + i];
        mean += y[i] / width;
      }
      for (const double v : y) variance += (v - mean) * (v - mean) / width;
      for (int i = 0; i < width; ++i) {
        const double z =
            (y[i] - mean) / std::sqrt(variance + 1e-5) * workspace.floats(op.gain)[group + i] +
            workspace.floats(op.shift)[group + i];
        ASSERT_NEAR(workspace.floats(op.output)[row * width + i], z / (1 + std::exp(-z)), 3e-5);
      }
    }
  }
}

TEST(ColumnSum, AddsRows) {
  Workspace workspace;
  ColumnSumOp op{};
  op.rows = 3;
  op.width = 2;
  op.values = workspace.add_floats("values", 6);
  op.sums = workspace.add_floats("sums", 2);
  workspace.allocate();
  for (int i = 0; i < 6; ++i) workspace.floats(op.values)[i] = i;
  for (int repetition = 0; repetition < 2; ++repetition) {
    execute(op, CpuFrame{workspace, Arguments{}});
    EXPECT_EQ(workspace.floats(op.sums)[0], 0 + 2 + 4);
    EXPECT_EQ(workspace.floats(op.sums)[1], 1 + 3 + 5);
  }
}

}  // namespace
}  // namespace millrace

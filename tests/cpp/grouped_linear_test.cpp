// Tests for cpp/grouped_linear.cpp: its three products against plain sums.
#include "grouped_linear.h"

#include <gtest/gtest.h>

#include "philox.h"
#include "program_cpu.h"

namespace millrace {
namespace {

constexpr int kRows = 5, kGroups = 2, kInputs = 4, kOutputs = 3;
constexpr GroupedLinear kLinear = {kGroups, kInputs, kOutputs, 7};

class GroupedLinearTest : public testing::TestWithParam<bool> {
 protected:
  GroupedLinearTest() : is_shared_(GetParam()) {
    const int width = is_shared_ ? kInputs : kGroups * kInputs;
    parameters_ = workspace_.add_floats("parameters", 7 + kLinear.count());
    x_ = workspace_.add_floats("x", static_cast<uint64_t>(kRows) * width);
    y_ = workspace_.add_floats("y", kRows * kGroups * kOutputs);
    gradient_ = workspace_.add_floats("gradient", 7 + kLinear.count());
    x_gradient_ = workspace_.add_floats("x_gradient", kRows * kGroups * kInputs);
    workspace_.allocate();
    u32 draw = 0;
    for (const Operand operand : {parameters_, x_, y_, x_gradient_}) {
      const uint64_t count = workspace_.carriers()[static_cast<size_t>(operand.carrier)].count;
      for (uint64_t i = 0; i < count; ++i) {
        workspace_.floats(operand)[i] = random_normal(random_source(1, kStreamEvent, 0, 0), draw++);
      }
    }
    input_ = {x_, width, is_shared_ ? 0u : static_cast<uint64_t>(kInputs)};
  }

  void run(const GemmOp& op) {
    Program program("linear", workspace_);
    program.record(op);
    run_on_cpu(program, {workspace_, Arguments{}});
  }
  float x(int r, int g, int i) const {
    return workspace_.floats(x_)[r * input_.stride + (is_shared_ ? 0 : g * kInputs) + i];
  }
  float weight(Operand of, int g, int o, int i) const {
    return workspace_.floats(of)[7 + (g * kOutputs + o) * kInputs + i];
  }
  float y(int r, int g, int o) const {
    return workspace_.floats(y_)[(r * kGroups + g) * kOutputs + o];
  }

  const bool is_shared_;
  Workspace workspace_;
  Operand parameters_, x_, y_, gradient_, x_gradient_;
  GroupedLinear::Input input_;
};

TEST_P(GroupedLinearTest, Forward) {
  run(kLinear.forward(kRows, input_, parameters_, y_));
  for (int r = 0; r < kRows; ++r) {
    for (int g = 0; g < kGroups; ++g) {
      for (int o = 0; o < kOutputs; ++o) {
        float sum = 0;
        for (int i = 0; i < kInputs; ++i) sum += x(r, g, i) * weight(parameters_, g, o, i);
        EXPECT_NEAR(y(r, g, o), sum, 1e-5);
      }
    }
  }
}

TEST_P(GroupedLinearTest, WeightGradient) {
  run(kLinear.weight_gradient(kRows, y_, input_, gradient_));
  for (int g = 0; g < kGroups; ++g) {
    for (int o = 0; o < kOutputs; ++o) {
      for (int i = 0; i < kInputs; ++i) {
        float sum = 0;
        for (int r = 0; r < kRows; ++r) sum += y(r, g, o) * x(r, g, i);
        EXPECT_NEAR(weight(gradient_, g, o, i), sum, 1e-5);
      }
    }
  }
}

TEST_P(GroupedLinearTest, InputGradientInsteadOfWhatWasThereOrAddedToIt) {
  const std::vector<float> before(workspace_.floats(x_gradient_),
                                  workspace_.floats(x_gradient_) + kRows * kGroups * kInputs);
  for (const bool accumulates : {true, false}) {
    GemmOp op = kLinear.input_gradient(kRows, y_, parameters_, x_gradient_);
    op.accumulates = accumulates;
    run(op);
    for (int r = 0; r < kRows; ++r) {
      for (int g = 0; g < kGroups; ++g) {
        for (int i = 0; i < kInputs; ++i) {
          const int at = (r * kGroups + g) * kInputs + i;
          float sum = accumulates ? before[static_cast<size_t>(at)] : 0.0f;
          for (int o = 0; o < kOutputs; ++o) sum += y(r, g, o) * weight(parameters_, g, o, i);
          EXPECT_NEAR(workspace_.floats(x_gradient_)[at], sum, 1e-5);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Inputs, GroupedLinearTest, testing::Values(false, true));

}  // namespace
}  // namespace millrace

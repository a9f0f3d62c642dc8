// Tests for cpp/relu_layer.cpp. Gradients of whole networks are tested in network_test.cpp.
#include "relu_layer.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Two rows of three columns.
struct Layer {
  Layer() {
    backward.rows = 2;
    backward.width = 3;
    backward.output = workspace.add_floats("output", 6);
    backward.gradient = workspace.add_floats("gradient", 6);
    workspace.allocate();
  }
  void set(Operand operand, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), workspace.floats(operand));
  }
  std::vector<float> get(Operand operand, int count) const {
    return {workspace.floats(operand), workspace.floats(operand) + count};
  }
  template <class AnyOp>
  void run(const AnyOp& op) {
    execute(op, CpuFrame{workspace, Arguments{}});
  }

  Workspace workspace;
  ReluBackwardOp backward{};
};

using Floats = std::vector<float>;

TEST(ReluLayer, PassesTheGradientWhereItPassedTheValue) {
  Layer layer;
  layer.set(layer.backward.output, {1.5f, 0, 2, 0, 5.5f, 0});
  layer.set(layer.backward.gradient, {1, 2, 3, 4, 5, 6});
  layer.run(layer.backward);
  EXPECT_EQ(layer.get(layer.backward.gradient, 6), (Floats{1, 0, 3, 0, 5, 0}));
}

}  // namespace
}  // namespace millrace

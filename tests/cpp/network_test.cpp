// Tests for cpp/network.cpp: layout, initial weights, and gradients against finite differences of a
// double-precision network.
#include "network.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fastsac_reference.h"
#include "program_cpu.h"

namespace millrace {
namespace {

constexpr NetworkShape kShape = {5, 16, 3, 2};

NetworkShape shape_of(NetworkBody body) {
  NetworkShape shape = kShape;
  shape.body = body;
  return shape;
}
constexpr int kRows = 4;

int rows_of(const Network::Tensor& tensor) {
  return tensor.shape.size() == 2 ? static_cast<int>(tensor.shape[0]) : 1;
}
int columns_of(const Network::Tensor& tensor) { return static_cast<int>(tensor.shape.back()); }

// Two groups on one input; the loss is the sum of all heads, each times a coefficient.
struct Problem {
  explicit Problem(NetworkBody body)
      : network(shape_of(body)),
        parameters(workspace.add_floats("parameters", network.parameter_count())),
        gradient(workspace.add_floats("gradient", network.parameter_count())),
        input(workspace.add_floats("input", kRows * network.input_stride())),
        input_gradient(workspace.add_floats("input_gradient", kRows * 2)),
        heads(workspace.add_floats("heads", kRows * kShape.groups * network.head_width())),
        coefficients(
            workspace.add_floats("coefficients", kRows * kShape.groups * network.head_width())),
        activations(network.add_activations(workspace, "network", kRows, true)) {
    network.record_forward(program, parameters, input, network.input_stride(), activations, heads);
    network.record_backward(program, parameters, input, network.input_stride(), activations,
                            coefficients, gradient);
    // Of columns 2 and 3, after the activations' gradients were used by the pass above.
    network.record_input_gradient(program, parameters, activations, coefficients, 2, 2,
                                  input_gradient);
    workspace.allocate();
    for (const Network::Tensor& tensor : network.tensors()) {
      for (int group = 0; group < kShape.groups; ++group) {
        fill(parameters + tensor.offset + static_cast<uint64_t>(group) * tensor.distance,
             rows_of(tensor), columns_of(tensor), static_cast<int>(tensor.row_stride));
      }
    }
    fill(input, kRows, kShape.inputs, network.input_stride());
    fill(coefficients, kRows * kShape.groups, kShape.outputs, network.head_width());
    run_on_cpu(program, {workspace, Arguments{}});
  }

  // What fills rows up stays zero.
  void fill(Operand matrix, int rows, int columns, int stride) {
    for (int i = 0; i < rows * columns; ++i) {
      workspace.floats(matrix)[i / columns * stride + i % columns] =
          0.7f * random_normal(random_source(1, kStreamEvent, 0, 0), number++);
    }
  }

  // Of one group, row by row.
  Vector tensor_of(Operand span, const Network::Tensor& tensor, int group) const {
    const float* values =
        workspace.floats(span) + tensor.offset + static_cast<uint64_t>(group) * tensor.distance;
    Vector found;
    for (int row = 0; row < rows_of(tensor); ++row) {
      const float* first = values + static_cast<uint64_t>(row) * tensor.row_stride;
      found.insert(found.end(), first, first + columns_of(tensor));
    }
    return found;
  }
  Parameters parameters_of(int group) const {
    Parameters named;
    for (const Network::Tensor& tensor : network.tensors()) {
      named["net/" + tensor.name] = tensor_of(parameters, tensor, group);
    }
    return named;
  }
  Vector input_of(int row) const {
    const float* values = workspace.floats(input) + row * network.input_stride();
    return Vector(values, values + kShape.inputs);
  }
  float coefficient(int row, int group, int output) const {
    return workspace.floats(
        coefficients)[(row * kShape.groups + group) * network.head_width() + output];
  }
  // The part of the loss that one row and one group make.
  double loss(const Parameters& of_group, const Vector& x, int row, int group) const {
    FastSacReference reference{};
    reference.spec.network = network.shape().body;
    reference.parameters = of_group;
    const Vector y = reference.network("net", x);
    double sum = 0;
    for (int o = 0; o < kShape.outputs; ++o) {
      sum += coefficient(row, group, o) * y[static_cast<size_t>(o)];
    }
    return sum;
  }

  u32 number = 0;  // of the next draw
  const Network network;
  Workspace workspace;
  Operand parameters, gradient, input, input_gradient, heads, coefficients;
  Network::Activations activations;
  Program program{"network", workspace};
};

TEST(Network, ComputesTheSameInPlaceWhereNoGradientIsWanted) {
  const Network network(shape_of(NetworkBody::kFastSac));
  Workspace workspace;
  const uint64_t count = static_cast<uint64_t>(kRows) * kShape.groups * network.head_width();
  const Operand parameters = workspace.add_floats("parameters", network.parameter_count());
  const Operand input = workspace.add_floats("input", kRows * network.input_stride());
  const Operand heads = workspace.add_floats("heads", 2 * count);
  Program program{"network", workspace};
  for (const bool with_gradients : {true, false}) {
    const Network::Activations activations = network.add_activations(
        workspace, with_gradients ? "apart" : "in_place", kRows, with_gradients);
    for (int i = 0; i < Network::kHiddenLayers; ++i) {
      EXPECT_EQ(activations.linear[i].carrier == activations.output[i].carrier, !with_gradients);
    }
    network.record_forward(program, parameters, input, network.input_stride(), activations,
                           heads + (with_gradients ? 0 : count));
  }
  workspace.allocate();
  network.initialise(workspace.floats(parameters), 1, 0, false);
  for (int i = 0; i < kRows * network.input_stride(); ++i) {
    workspace.floats(input)[i] = random_normal(random_source(1, kStreamEvent, 0, 0), i);
  }
  run_on_cpu(program, {workspace, Arguments{}});
  const float* apart = workspace.floats(heads);
  EXPECT_NE(apart[0], apart[network.head_width()]);
  for (uint64_t i = 0; i < count; ++i) EXPECT_EQ(apart[i], apart[count + i]) << i;
}

class NetworkGradient : public testing::TestWithParam<NetworkBody> {};

INSTANTIATE_TEST_SUITE_P(Bodies, NetworkGradient,
                         testing::Values(NetworkBody::kFastSac, NetworkBody::kPlain));

TEST_P(NetworkGradient, OfEveryParameterIsThatOfFiniteDifferences) {
  const Problem problem(GetParam());
  constexpr double kStep = 1e-5;
  for (const Network::Tensor& tensor : problem.network.tensors()) {
    for (int group = 0; group < kShape.groups; ++group) {
      const Vector computed = problem.tensor_of(problem.gradient, tensor, group);
      Parameters moved = problem.parameters_of(group);
      Vector& values = moved.at("net/" + tensor.name);
      double error = 0, norm = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        const double value = values[i];
        double difference = 0;
        for (int row = 0; row < kRows; ++row) {
          values[i] = value + kStep;
          difference += problem.loss(moved, problem.input_of(row), row, group) / (2 * kStep);
          values[i] = value - kStep;
          difference -= problem.loss(moved, problem.input_of(row), row, group) / (2 * kStep);
        }
        values[i] = value;
        error += (computed[i] - difference) * (computed[i] - difference);
        norm += difference * difference;
      }
      EXPECT_LE(std::sqrt(error), 1e-4 * std::sqrt(norm)) << tensor.name << " of group " << group;
    }
  }
}

TEST_P(NetworkGradient, OfTheInputIsSummedOverTheGroups) {
  const Problem problem(GetParam());
  constexpr double kStep = 1e-5;
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < 2; ++column) {
      double difference = 0;
      for (int group = 0; group < kShape.groups; ++group) {
        const Parameters parameters = problem.parameters_of(group);
        for (const double side : {1.0, -1.0}) {
          Vector x = problem.input_of(row);
          x[static_cast<size_t>(2 + column)] += side * kStep;
          difference += side * problem.loss(parameters, x, row, group) / (2 * kStep);
        }
      }
      const float computed = problem.workspace.floats(problem.input_gradient)[row * 2 + column];
      EXPECT_NEAR(computed, difference, 1e-4 * std::max(1.0, std::abs(difference)));
    }
  }
}

TEST(Network, StartsInTheUsualRangeEachTensorWithItsOwnDraws) {
  const Network network(kShape);
  std::vector<float> parameters(network.parameter_count());
  network.initialise(parameters.data(), 1, 0, false);
  for (const Network::Tensor& tensor : network.tensors()) {
    const float limit = 1.0f / std::sqrt(static_cast<float>(tensor.fan_in));
    for (uint64_t i = 0; i < 2 * tensor.distance; ++i) {
      const float value = parameters[tensor.offset + i];
      const int row = static_cast<int>(i % tensor.distance / tensor.row_stride);
      const int column = static_cast<int>(i % tensor.row_stride);
      if (row >= rows_of(tensor) || column >= columns_of(tensor)) {
        EXPECT_EQ(value, 0.0f) << tensor.name << " is filled up with zeros";
      } else if (tensor.kind == Network::Tensor::kGain) {
        EXPECT_EQ(value, 1.0f);
      } else if (tensor.kind == Network::Tensor::kShift) {
        EXPECT_EQ(value, 0.0f);
      } else {
        EXPECT_LE(std::abs(value), limit);
        EXPECT_NE(value, 0.0f);
      }
    }
    if (tensor.kind == Network::Tensor::kWeight) {
      EXPECT_NE(parameters[tensor.offset], parameters[tensor.offset + tensor.distance]);
    }
  }
  std::vector<float> again(parameters.size()), other(parameters.size());
  network.initialise(again.data(), 1, 0, false);
  network.initialise(other.data(), 2, 0, false);
  EXPECT_EQ(again, parameters);
  EXPECT_NE(other, parameters);
  // An actor's head starts at zero: the first actions are noise around the default pose.
  network.initialise(again.data(), 1, 0, true);
  for (uint64_t i = network.head().weight; i < network.parameter_count(); ++i) {
    EXPECT_EQ(again[i], 0.0f);
  }
}

TEST(Network, LaysOutTensorsGroupByGroup) {
  const Network network({10, 8, 5, 2});
  EXPECT_EQ(network.layer(0).outputs, 8);
  EXPECT_EQ(network.layer(2).outputs, 2);
  EXPECT_EQ(network.head().inputs, 2);
  uint64_t next = 0;
  for (const Network::Tensor& tensor : network.tensors()) {
    EXPECT_EQ(tensor.offset, next) << tensor.name;
    next += 2 * tensor.distance;
  }
  EXPECT_EQ(network.parameter_count(), next);
  // 10 inputs fill up to 16, 5 outputs to 8: 2 x (16*8 + 8*3 + 8*4 + 4*3 + 4*2 + 2*3 + 2*8 + 8)
  EXPECT_EQ(next, 2u * 234u);
  EXPECT_EQ(network.input_stride(), 16);
  EXPECT_EQ(network.head_width(), 8);
}

TEST(Network, APlainOneHasEqualWidthsAndNoNorms) {
  const Network network({10, 8, 5, 2, NetworkBody::kPlain});
  EXPECT_EQ(network.layer(2).inputs, 8);
  EXPECT_EQ(network.layer(2).outputs, 8);
  // 10 inputs fill up to 16, 5 outputs to 8: 2 x (16*8 + 8 + 8*8 + 8 + 8*8 + 8 + 8*8 + 8)
  EXPECT_EQ(network.parameter_count(), 2u * 352u);
  EXPECT_EQ(network.tensors().size(), 8u);
}

TEST(Network, AWidthThatCannotBeHalvedTwiceIsABug) {
  EXPECT_THROW(Network({5, 6, 3, 1}), Failure);
  EXPECT_THROW(Network({0, 8, 3, 1}), Failure);
}

}  // namespace
}  // namespace millrace

// Tests for cpp/batch_norm.cpp: against a plain double-precision normalisation, and gradients
// against its finite differences.
#include "batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "philox.h"

namespace millrace {
namespace {

constexpr int kRows = 37, kGroups = 2, kWidth = 21;
constexpr size_t kColumns = kGroups * kWidth;
using Vector = std::vector<double>;

// One normalisation with its carriers filled at random.
struct Problem {
  explicit Problem(bool is_training, bool has_relu, bool is_shared) {
    norm.rows = kRows;
    norm.groups = kGroups;
    norm.width = kWidth;
    norm.input_stride = is_shared ? kWidth + 3 : static_cast<int>(kColumns);
    norm.input_distance = is_shared ? 0 : kWidth;
    norm.is_training = is_training;
    norm.has_relu = has_relu;
    norm.input = workspace.add_floats("input", static_cast<uint64_t>(kRows) * norm.input_stride);
    norm.affine = workspace.add_floats("affine", 2 * kColumns);
    norm.mean = workspace.add_floats("mean", kColumns);
    norm.variance = workspace.add_floats("variance", kColumns);
    residual = workspace.add_floats("residual", kRows * kColumns);
    output = workspace.add_floats("output", kRows * kColumns);
    gradient = workspace.add_floats("gradient", kRows * kColumns);
    input_gradient = workspace.add_floats("input_gradient", kRows * kColumns);
    affine_gradient = workspace.add_floats("affine_gradient", 2 * kColumns);
    workspace.allocate();
    for (size_t c = 0; c < workspace.carriers().size(); ++c) {
      const Operand operand{static_cast<int>(c), 0};
      const RandomSource source = random_source(3, kStreamEvent, static_cast<u32>(c), 0);
      for (uint64_t i = 0; i < workspace.carriers()[c].count; ++i) {
        float& value = workspace.floats(operand)[i];
        value = random_normal(source, static_cast<u32>(i));
        if (operand.carrier == norm.input.carrier) value = 5.0f + 2.0f * value;
        if (operand.carrier == norm.variance.carrier) value = 0.5f + value * value;
      }
    }
  }

  double at(Operand operand, size_t i) const { return workspace.floats(operand)[i]; }
  Vector read(Operand operand) const {
    const uint64_t count = workspace.carriers()[static_cast<size_t>(operand.carrier)].count;
    return Vector(workspace.floats(operand), workspace.floats(operand) + count);
  }
  size_t input_place(int r, size_t column) const {
    return static_cast<size_t>(r) * norm.input_stride +
           (norm.input_distance == 0 ? column % kWidth : column);
  }

  // [row][column], without the residual; `statistics` takes mean and biased variance.
  Vector expected(const Vector& input, const Vector& affine, Vector* statistics = nullptr) const {
    Vector y(kRows * kColumns);
    for (size_t c = 0; c < kColumns; ++c) {
      double mean = at(norm.mean, c), variance = at(norm.variance, c);
      if (norm.is_training) {
        mean = variance = 0;
        for (int r = 0; r < kRows; ++r) mean += input[input_place(r, c)] / kRows;
        for (int r = 0; r < kRows; ++r) {
          variance += std::pow(input[input_place(r, c)] - mean, 2) / kRows;
        }
      }
      if (statistics != nullptr) statistics->insert(statistics->end(), {mean, variance});
      const size_t group = c / kWidth, column = c % kWidth;
      for (int r = 0; r < kRows; ++r) {
        const double z = (input[input_place(r, c)] - mean) / std::sqrt(variance + 1e-5) *
                             affine[group * 2 * kWidth + column] +
                         affine[group * 2 * kWidth + kWidth + column];
        y[static_cast<size_t>(r) * kColumns + c] = norm.has_relu ? std::max(0.0, z) : z;
      }
    }
    return y;
  }

  Workspace workspace;
  BatchNorm norm{};
  Operand residual, output, gradient, input_gradient, affine_gradient;
};

struct Case {
  bool is_training, has_relu, is_shared;
};

class BatchNormTest : public testing::TestWithParam<Case> {};

TEST_P(BatchNormTest, ForwardIsThatOfThePlainOne) {
  const auto [is_training, has_relu, is_shared] = GetParam();
  for (const bool has_residual : {false, true}) {
    Problem problem(is_training, has_relu, is_shared);
    Vector statistics;
    Vector expected = problem.expected(problem.read(problem.norm.input),
                                       problem.read(problem.norm.affine), &statistics);
    BatchNormForwardOp op{};
    op.norm = problem.norm;
    op.residual = has_residual ? problem.residual : Operand{};
    op.output = problem.output;
    execute(op, {problem.workspace, Arguments{}});
    for (size_t i = 0; i < expected.size(); ++i) {
      if (has_residual) expected[i] += problem.at(problem.residual, i);
      ASSERT_NEAR(problem.at(problem.output, i), expected[i], 2e-5) << i;
    }
    for (size_t c = 0; c < kColumns; ++c) {
      EXPECT_NEAR(problem.at(problem.norm.mean, c), statistics[2 * c], 1e-5);
      EXPECT_NEAR(problem.at(problem.norm.variance, c), statistics[2 * c + 1], 1e-5);
    }
  }
}

TEST_P(BatchNormTest, GradientsAreThoseOfFiniteDifferences) {
  const auto [is_training, has_relu, is_shared] = GetParam();
  Problem problem(is_training, has_relu, is_shared);
  const Vector weights = problem.read(problem.gradient);
  BatchNormForwardOp forward{};
  forward.norm = problem.norm;
  forward.output = problem.output;
  execute(forward, {problem.workspace, Arguments{}});
  BatchNormBackwardOp op{};
  op.norm = problem.norm;
  op.gradient = problem.gradient;
  op.input_gradient = is_shared ? problem.input_gradient : problem.gradient;  // in place
  op.affine_gradient = problem.affine_gradient;
  execute(op, {problem.workspace, Arguments{}});

  Vector input = problem.read(problem.norm.input), affine = problem.read(problem.norm.affine);
  const auto loss = [&] {
    const Vector y = problem.expected(input, affine);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += weights[i] * y[i];
    return sum;
  };
  const auto difference = [&](double& value) {
    constexpr double kStep = 1e-6;
    const double before = value;
    value = before + kStep;
    const double above = loss();
    value = before - kStep;
    const double below = loss();
    value = before;
    return (above - below) / (2 * kStep);
  };
  for (size_t i = 0; i < affine.size(); i += 5) {
    EXPECT_NEAR(problem.at(problem.affine_gradient, i), difference(affine[i]), 1e-3) << i;
  }
  for (int r = 0; r < kRows; r += 3) {
    for (size_t c = 0; c < (is_shared ? kWidth : kColumns); c += 4) {
      const size_t at = static_cast<size_t>(r) * (is_shared ? kWidth : kColumns) + c;
      EXPECT_NEAR(problem.at(op.input_gradient, at), difference(input[problem.input_place(r, c)]),
                  2e-4)
          << r << " " << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, BatchNormTest,
                         testing::Values(Case{true, false, false}, Case{true, true, false},
                                         Case{false, true, false}, Case{true, false, true},
                                         Case{false, false, true}));

TEST(RunningStatistics, MoveByTheirShareUnlessTheUpdateIsLeftOut) {
  Workspace workspace;
  RunningStatisticsOp op{};
  op.count = 2;
  op.batch = workspace.add_floats("batch", 4);
  op.running = workspace.add_floats("running", 4);
  op.finite = workspace.add_floats("finite", 1);
  op.share = 0.25f;
  op.correction = 2.0f;
  workspace.allocate();
  std::fill_n(workspace.floats(op.batch), 4, 8.0f);
  execute(op, {workspace, Arguments{}});
  EXPECT_EQ(workspace.floats(op.running)[0], 0.0f);
  *workspace.floats(op.finite) = 1.0f;
  execute(op, {workspace, Arguments{}});
  EXPECT_EQ(workspace.floats(op.running)[1], 2.0f);  // a mean
  EXPECT_EQ(workspace.floats(op.running)[2], 4.0f);  // a variance, corrected
}

}  // namespace
}  // namespace millrace

// Tests for cpp/rms_norm.cpp and cpp/rms_norm_body.h: against a plain double-precision one and its
// finite differences.
#include "rms_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "philox.h"

namespace millrace {
namespace {

constexpr int kRows = 9, kGroups = 2, kWidth = 19;
constexpr size_t kColumns = kGroups * kWidth;
using Vector = std::vector<double>;

struct Problem {
  Problem() {
    input = workspace.add_floats("input", kRows * kColumns);
    gain = workspace.add_floats("gain", kColumns);
    gradient = workspace.add_floats("gradient", kRows * kColumns);
    inverse_rms = workspace.add_floats("inverse_rms", kRows * kGroups);
    output = workspace.add_floats("output", kRows * kColumns);
    gain_gradient = workspace.add_floats("gain_gradient", kColumns);
    workspace.allocate();
    for (const Operand operand : {input, gain, gradient}) {
      const RandomSource source =
          random_source(4, kStreamEvent, static_cast<u32>(operand.carrier), 0);
      const uint64_t count = workspace.carriers()[static_cast<size_t>(operand.carrier)].count;
      for (uint64_t i = 0; i < count; ++i) {
        workspace.floats(operand)[i] = random_normal(source, static_cast<u32>(i));
      }
    }
  }
  Vector read(Operand operand) const {
    const uint64_t count = workspace.carriers()[static_cast<size_t>(operand.carrier)].count;
    return Vector(workspace.floats(operand), workspace.floats(operand) + count);
  }
  static Vector expected(const Vector& x, const Vector& gain) {
    Vector y = x;
    for (size_t row = 0; row < kRows * kGroups; ++row) {
      double squares = 0;
      for (size_t i = 0; i < kWidth; ++i) squares += std::pow(x[row * kWidth + i], 2) / kWidth;
      for (size_t i = 0; i < kWidth; ++i) {
        y[row * kWidth + i] *= gain[row % kGroups * kWidth + i] / std::sqrt(squares + 1e-6);
      }
    }
    return y;
  }
  void forward() {
    execute(RmsNormForwardOp{kRows, kGroups, kWidth, input, gain, inverse_rms, output},
            {workspace, Arguments{}});
  }

  Workspace workspace;
  Operand input, gain, gradient, inverse_rms, output, gain_gradient;
};

TEST(RmsNorm, ForwardIsThatOfThePlainOne) {
  Problem problem;
  problem.forward();
  const Vector expected =
      Problem::expected(problem.read(problem.input), problem.read(problem.gain));
  const Vector found = problem.read(problem.output);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6);
}

TEST(RmsNorm, GradientsAreThoseOfFiniteDifferences) {
  Problem problem;
  problem.forward();
  const Vector weights = problem.read(problem.gradient);
  execute(
      RmsNormBackwardOp{kRows, kGroups, kWidth, problem.gradient, problem.input,
                        problem.inverse_rms, problem.gain, problem.gradient, problem.gain_gradient},
      {problem.workspace, Arguments{}});
  Vector x = problem.read(problem.input), gain = problem.read(problem.gain);
  const auto difference = [&](double& value) {
    constexpr double kStep = 1e-6;
    const double before = value;
    double sums[2];
    for (const int side : {0, 1}) {
      value = before + (side == 0 ? kStep : -kStep);
      const Vector y = Problem::expected(x, gain);
      sums[side] = 0;
      for (size_t i = 0; i < y.size(); ++i) sums[side] += weights[i] * y[i];
    }
    value = before;
    return (sums[0] - sums[1]) / (2 * kStep);
  };
  const Vector found = problem.read(problem.gradient),
               of_gain = problem.read(problem.gain_gradient);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(found[i], difference(x[i]), 1e-5) << i;
  for (size_t i = 0; i < gain.size(); ++i) EXPECT_NEAR(of_gain[i], difference(gain[i]), 1e-5) << i;
}

}  // namespace
}  // namespace millrace

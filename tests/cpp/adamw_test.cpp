// Tests for cpp/adamw.cpp.
#include "adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "philox.h"

namespace millrace {
namespace {

constexpr uint64_t kCount = 1003;  // no multiple of a vector's width
constexpr float kMaxNorm = 10.0f;  // of gradients that are longer

struct Fixture {
  Workspace workspace;
  AdamWOp op{};
  Arguments arguments{};

  explicit Fixture(bool with_target) {
    op.count = kCount;
    op.parameters = workspace.add_floats("parameters", kCount);
    op.gradient = workspace.add_floats("gradient", kCount);
    op.first_moment = workspace.add_floats("first", kCount);
    op.second_moment = workspace.add_floats("second", kCount);
    op.step = workspace.add("step", DType::kU64, 1);
    op.loss = workspace.add_floats("scalars", 4);
    op.norm = op.loss + 1;
    op.clip = op.loss + 2;
    op.finite = op.loss + 3;
    op.max_norm = kMaxNorm;
    if (with_target) op.target = workspace.add_floats("target", kCount);
    op.constants = {0.9f, 0.95f, 0.1f};
    op.rate = LearningRate::kCritic;
    workspace.allocate();
    *workspace.floats(op.finite) = 1.0f;
    arguments.critic_learning_rate = 1e-2f;
    arguments.target_rate = 0.125f;
    draw(op.parameters, 1);
    if (with_target) draw(op.target, 2);
  }
  void draw(Operand operand, u32 environment) {
    for (uint64_t i = 0; i < kCount; ++i) {
      workspace.floats(operand)[i] =
          random_normal(random_source(1, kStreamEvent, environment, 0), static_cast<u32>(i));
    }
  }
  std::vector<float> values(Operand operand) const {
    return {workspace.floats(operand), workspace.floats(operand) + kCount};
  }
  float scalar(Operand operand) const { return *workspace.floats(operand); }
  void run() { execute(op, CpuFrame{workspace, arguments}); }
};

TEST(AdamW, EqualsTheDoubleReferenceOverTenSteps) {
  for (const bool with_target : {false, true}) {
    Fixture fixture(with_target);
    std::vector<double> p(kCount), m(kCount), v(kCount), t(kCount);
    for (uint64_t i = 0; i < kCount; ++i) {
      p[i] = fixture.values(fixture.op.parameters)[i];
      if (with_target) t[i] = fixture.workspace.floats(fixture.op.target)[i];
    }
    for (int step = 1; step <= 10; ++step) {
      fixture.draw(fixture.op.gradient, 10 + step);
      const std::vector<float> gradient = fixture.values(fixture.op.gradient);
      double squares = 0;
      for (const float g : gradient) squares += double{g} * g;
      const double clip = kMaxNorm / std::sqrt(squares);
      ASSERT_LT(clip, 0.5);
      for (uint64_t i = 0; i < kCount; ++i) {
        const double g = clip * gradient[i];
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.95 * v[i] + 0.05 * g * g;
        p[i] -= 1e-2 * 0.1 * p[i];
        p[i] -= 1e-2 * (m[i] / (1 - std::pow(0.9, step))) /
                (std::sqrt(v[i] / (1 - std::pow(0.95, step))) + 1e-8);
        t[i] += 0.125 * (p[i] - t[i]);
      }
      fixture.run();
    }
    const std::vector<float> parameters = fixture.values(fixture.op.parameters);
    for (uint64_t i = 0; i < kCount; ++i) {
      ASSERT_NEAR(parameters[i], p[i], 2e-6);
      if (with_target) {
        ASSERT_NEAR(fixture.workspace.floats(fixture.op.target)[i], t[i], 2e-6);
      }
    }
    EXPECT_EQ(*fixture.workspace.counters(fixture.op.step), 10u);
  }
}

TEST(AdamW, DoesNothingWhenTheUpdateIsNotFinite) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  enum class Cause { kLoss, kGradient, kEarlierFinding };
  for (const Cause cause : {Cause::kLoss, Cause::kGradient, Cause::kEarlierFinding}) {
    Fixture fixture(true);
    fixture.draw(fixture.op.gradient, 3);
    fixture.op.rows = {{0, 17, 59, 1.0f}};
    fixture.op.opens = cause != Cause::kEarlierFinding;
    const auto parameters = fixture.values(fixture.op.parameters);
    const auto target = fixture.values(fixture.op.target);
    if (cause == Cause::kLoss) *fixture.workspace.floats(fixture.op.loss) = kNan;
    if (cause == Cause::kGradient) fixture.workspace.floats(fixture.op.gradient)[1002] = kNan;
    *fixture.workspace.floats(fixture.op.finite) = fixture.op.opens ? 1.0f : 0.0f;
    fixture.run();
    EXPECT_EQ(fixture.values(fixture.op.parameters), parameters);
    EXPECT_EQ(fixture.values(fixture.op.target), target);
    EXPECT_EQ(*fixture.workspace.counters(fixture.op.step), 0u);
    EXPECT_EQ(fixture.scalar(fixture.op.finite), 0.0f);
  }
}

TEST(AdamW, MeasuresTheGradientAndClips) {
  Fixture fixture(false);
  for (uint64_t i = 0; i < kCount; ++i) fixture.workspace.floats(fixture.op.gradient)[i] = 0.5f;
  fixture.op.opens = true;
  *fixture.workspace.floats(fixture.op.finite) = 0.0f;  // of the update before
  fixture.run();
  const double length = std::sqrt(kCount * 0.25);
  EXPECT_NEAR(fixture.scalar(fixture.op.norm), length, 1e-4);
  EXPECT_NEAR(fixture.scalar(fixture.op.clip), kMaxNorm / length, 1e-6);
  EXPECT_EQ(fixture.scalar(fixture.op.finite), 1.0f);
  EXPECT_EQ(*fixture.workspace.counters(fixture.op.step), 1u);
  fixture.op.max_norm = 0.0f;
  fixture.run();
  EXPECT_EQ(fixture.scalar(fixture.op.clip), 1.0f);
}

// The target follows what the rows have become.
TEST(AdamW, RowsGetTheirLengthAfterTheStep) {
  Fixture scaled(true), plain(true);
  scaled.op.rows = {{0, 16, 59, 2.0f}, {944, 1, 59, 0.0f}};
  for (Fixture* fixture : {&scaled, &plain}) {
    fixture->draw(fixture->op.gradient, 3);
    fixture->run();
  }
  const auto before = plain.values(plain.op.parameters),
             after = scaled.values(scaled.op.parameters);
  const auto moved = scaled.values(scaled.op.target);
  Fixture untouched(true);
  const auto old_target = untouched.values(untouched.op.target);
  for (uint64_t row = 0; row < 17; ++row) {
    double squares = 0;
    for (uint64_t i = row * 59; i < (row + 1) * 59; ++i) squares += double{before[i]} * before[i];
    const double scale = row < 16 ? 2.0 / std::sqrt(squares) : 1.0;
    for (uint64_t i = row * 59; i < (row + 1) * 59; ++i) {
      ASSERT_NEAR(after[i], before[i] * scale, 1e-5);
      ASSERT_NEAR(moved[i], old_target[i] + 0.125 * (after[i] - old_target[i]), 1e-6);
    }
  }
}

TEST(AdamW, RowsThatLeaveParametersOutAreABug) {
  Fixture fixture(false);
  Program program("refused", fixture.workspace);
  fixture.op.rows = {{0, 17, 58, 1.0f}};
  EXPECT_THROW(program.record(fixture.op), Failure);
  fixture.op.rows = {{0, 8, 59, 1.0f}, {473, 9, 59, 1.0f}};
  EXPECT_THROW(program.record(fixture.op), Failure);
  fixture.op.rows = {{0, 8, 59, 1.0f}, {472, 9, 59, 1.0f}};
  program.record(fixture.op);
}

TEST(Temperature, StepsTowardsTheTargetEntropy) {
  for (const float entropy : {-3.0f, 5.0f}) {
    Workspace workspace;
    TemperatureOp op{};
    op.rows = 2;
    op.log_probability = workspace.add_floats("log_probability", 2);
    op.log_alpha = workspace.add_floats("log_alpha", 1);
    op.first_moment = workspace.add_floats("first", 1);
    op.second_moment = workspace.add_floats("second", 1);
    op.step = workspace.add("step", DType::kU64, 1);
    op.finite = workspace.add_floats("scalars", 4);
    op.loss = op.finite + 1;
    op.alpha = op.finite + 2;
    op.gradient = op.finite + 3;
    op.constants = {0.9f, 0.95f, 0.0f};
    op.target_entropy = 1.0f;
    workspace.allocate();
    *workspace.floats(op.finite) = 1.0f;
    workspace.floats(op.log_probability)[0] = workspace.floats(op.log_probability)[1] = -entropy;
    Arguments arguments{};
    arguments.alpha_learning_rate = 1e-3f;
    execute(op, CpuFrame{workspace, arguments});
    // Adam's first step has the rate's length: down when there is more entropy than wanted.
    EXPECT_NEAR(*workspace.floats(op.log_alpha), entropy > 1.0f ? -1e-3 : 1e-3, 1e-6);
    EXPECT_NEAR(*workspace.floats(op.loss), entropy - 1.0f, 1e-6);
  }
}

}  // namespace
}  // namespace millrace

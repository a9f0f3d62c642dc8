// Tests for cpp/adamw.cpp.
#include "adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "philox.h"

namespace millrace {
namespace {

constexpr uint64_t kCount = 1003;  // no multiple of a vector's width

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
    op.clip = workspace.add_floats("clip", 1);
    op.finite = workspace.add_floats("finite", 1);
    if (with_target) op.target = workspace.add_floats("target", kCount);
    op.constants = {0.9f, 0.95f, 0.1f};
    op.rate = LearningRate::kCritic;
    workspace.allocate();
    *workspace.floats(op.clip) = 0.5f;
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
      for (uint64_t i = 0; i < kCount; ++i) {
        const double g = 0.5 * gradient[i];
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.95 * v[i] + 0.05 * g * g;
        p[i] -= 1e-2 * 0.1 * p[i];
        p[i] -= 1e-2 * (m[i] / (1 - std::pow(0.9, step))) /
                (std::sqrt(v[i] / (1 - std::pow(0.95, step))) + 1e-8);
        t[i] += 0.125 * (p[i] - t[i]);
      }
      execute(fixture.op, CpuFrame{fixture.workspace, fixture.arguments});
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
  Fixture fixture(true);
  fixture.draw(fixture.op.gradient, 3);
  const auto parameters = fixture.values(fixture.op.parameters);
  const auto target = fixture.values(fixture.op.target);
  *fixture.workspace.floats(fixture.op.finite) = 0.0f;
  execute(fixture.op, CpuFrame{fixture.workspace, fixture.arguments});
  EXPECT_EQ(fixture.values(fixture.op.parameters), parameters);
  EXPECT_EQ(fixture.values(fixture.op.target), target);
  EXPECT_EQ(*fixture.workspace.counters(fixture.op.step), 0u);
}

struct NormFixture {
  Workspace workspace;
  GradientNormOp op{};

  NormFixture() {
    op.count = 10000;
    op.gradient = workspace.add_floats("gradient", op.count);
    op.loss = workspace.add_floats("scalars", 4);
    op.norm = op.loss + 1;
    op.clip = op.loss + 2;
    op.finite = op.loss + 3;
    op.max_norm = 10.0f;
    op.opens = true;
    workspace.allocate();
    for (uint64_t i = 0; i < op.count; ++i) workspace.floats(op.gradient)[i] = 0.5f;
  }
  float run(Operand scalar) {
    execute(op, CpuFrame{workspace, Arguments{}});
    return *workspace.floats(scalar);
  }
};

TEST(GradientNorm, IsTheLengthAndClips) {
  NormFixture fixture;
  EXPECT_NEAR(fixture.run(fixture.op.norm), 50.0, 1e-4);  // sqrt(10,000) / 2
  EXPECT_NEAR(fixture.run(fixture.op.clip), 0.2, 1e-6);
  EXPECT_EQ(fixture.run(fixture.op.finite), 1.0f);
  fixture.op.max_norm = 0.0f;
  EXPECT_EQ(fixture.run(fixture.op.clip), 1.0f);
}

TEST(GradientNorm, FindsWhatIsNotFiniteAndKeepsAnEarlierFinding) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  NormFixture loss;
  *loss.workspace.floats(loss.op.loss) = kNan;
  EXPECT_EQ(loss.run(loss.op.finite), 0.0f);
  NormFixture gradient;
  gradient.workspace.floats(gradient.op.gradient)[9999] = kNan;
  EXPECT_EQ(gradient.run(gradient.op.finite), 0.0f);
  NormFixture later;
  later.op.opens = false;  // finite is 0 from before
  EXPECT_EQ(later.run(later.op.finite), 0.0f);
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

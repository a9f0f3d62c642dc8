// Tests for cpp/scalar_critic.cpp and cpp/scalar_critic_body.h. Gradients of whole updates are
// compared with finite differences in learner_fastsac_test.cpp.
#include "scalar_critic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "scalar_critic_body.h"

namespace millrace {
namespace {

int least_of(const std::vector<float>& values) {
  LeastValue least{};
  for (size_t i = 0; i < values.size(); ++i) least.see(values[i], static_cast<int>(i));
  return least.group;
}

TEST(LeastValue, IsTheFirstOfTheSmallest) {
  EXPECT_EQ(least_of({3, 2, 8}), 1);
  EXPECT_EQ(least_of({3, 2, 1}), 2);
  EXPECT_EQ(least_of({2, 2, 9}), 0);
  EXPECT_EQ(least_of({2, NAN, 1}), 1);
  EXPECT_EQ(least_of({NAN, NAN, 1}), 0);
}

constexpr int kStride = 3;  // from bias to bias, and from gradient to gradient
constexpr int kWidth = 2;   // of the hidden layer

// Two critics, whose hidden layers' first column is the value and whose second one weighs nothing,
// and rows of reward, done, truncated.
struct Critics {
  explicit Critics(int rows) : batch(static_cast<size_t>(rows) * 3) {
    const auto count = static_cast<uint64_t>(rows);
    ScalarHead head{};
    head.rows = target.source_rows = rows;
    head.groups = 2;
    head.width = kWidth;
    head.hidden = workspace.add_floats("hidden", 2 * kWidth * count);
    head.weight = workspace.add_floats("weight", 2 * kWidth);
    head.weight_distance = kWidth;
    head.bias = workspace.add_floats("bias", 2 * kStride);
    head.bias_distance = kStride;
    target.head = critic_gradient.head = actor_gradient.head = head;
    critic.rows = actor.rows = rows;
    critic.groups = 2;
    critic.values = critic_gradient.values = workspace.add_floats("values", 2 * count);
    actor.least_values = actor_gradient.least_values = workspace.add_floats("least", count);
    target.reward_column = 0;
    target.done_column = 1;
    target.truncated_column = 2;
    target.gamma = 0.5f;
    target.log_probability = actor.log_probability = workspace.add_floats("log pi", count);
    target.log_alpha = actor.log_alpha = workspace.add_floats("log alpha", 1);
    target.target = critic.target = critic_gradient.target = workspace.add_floats("target", count);
    critic_gradient.values_gradient = workspace.add_floats("values gradient", 2 * kStride * count);
    critic_gradient.gradient.hidden = actor_gradient.gradient.hidden =
        workspace.add_floats("hidden gradient", 2 * kWidth * count);
    critic.loss = actor.loss = workspace.add_floats("loss", 1);
    critic.value_mean = workspace.add_floats("mean", 1);
    critic.value_max = workspace.add_floats("max", 1);
    critic.value_min = workspace.add_floats("min", 1);
    actor.entropy = workspace.add_floats("entropy", 1);
    workspace.allocate();
    set(target.log_alpha, {std::log(0.25f)});
    set(head.weight, {1, 0, 1, 0});
  }
  void set(Operand operand, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), workspace.floats(operand));
  }
  // [row][group], before the bias.
  void set_values(const std::vector<float>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      workspace.floats(target.head.hidden)[i * kWidth] = values[i];
    }
  }
  void set_bias(float first, float second) {
    workspace.floats(target.head.bias)[0] = first;
    workspace.floats(target.head.bias)[kStride] = second;
  }
  float at(Operand operand, int i = 0) const { return workspace.floats(operand)[i]; }
  template <class AnyOp>
  void run(const AnyOp& op) {
    Arguments arguments{};
    arguments.rows = batch.data();
    arguments.row_stride = 3;
    arguments.reward_scale = reward_scale;
    execute(op, CpuFrame{workspace, arguments});
  }

  std::vector<float> batch;
  float reward_scale = 1.0f;
  Workspace workspace;
  ScalarTargetOp target{};
  ScalarCriticGradientOp critic_gradient{};
  ScalarCriticLossOp critic{};
  ScalarActorGradientOp actor_gradient{};
  ScalarActorLossOp actor{};
};

// r + gamma b (min Q' - alpha log pi'), where the time limit bootstraps and an end does not.
TEST(ScalarTarget, IsTheRewardAndTheSmallerSoftValueUnlessTheEpisodeEnded) {
  Critics critics(3);
  critics.batch = {1, 0, 0, 2, 1, 0, 3, 1, 1};
  critics.set_values({5, 6, 5, 6, 9, 7});
  critics.set_bias(1, -2);
  critics.set(critics.target.log_probability, {-4, -4, 8});
  critics.run(critics.target);
  EXPECT_NEAR(critics.at(critics.target.target, 0), 1 + 0.5 * (4 + 0.25 * 4), 1e-6);
  EXPECT_NEAR(critics.at(critics.target.target, 1), 2, 1e-6);
  EXPECT_NEAR(critics.at(critics.target.target, 2), 3 + 0.5 * (5 - 0.25 * 8), 1e-6);
}

TEST(ScalarTarget, MirroredRowsShareTheirRewards) {
  Critics critics(2);
  critics.target.source_rows = 1;
  critics.batch = {7, 1, 0, 100, 1, 0};
  critics.run(critics.target);
  EXPECT_EQ(critics.at(critics.target.target, 1), 7.0f);
}

TEST(ScalarTarget, RewardsAreScaled) {
  Critics critics(1);
  critics.batch = {7, 0, 0};
  critics.reward_scale = 0.5f;
  critics.set_values({5, 6});
  critics.run(critics.target);
  EXPECT_NEAR(critics.at(critics.target.target), 3.5 + 0.5 * 5, 1e-6);
}

TEST(ScalarCriticLoss, IsTheSquaredErrorOverRowsSummedOverCritics) {
  Critics critics(2);
  critics.set_values({1, 2, 3, 4});
  critics.set_bias(0, 1);
  critics.set(critics.critic.target, {2, 3});
  critics.run(critics.critic_gradient);
  critics.run(critics.critic);  // values 1 3 | 3 5, errors -1 1 | 0 2
  EXPECT_NEAR(critics.at(critics.critic.loss), 6.0 / 2, 1e-6);
  const std::vector<float> gradient = {-1, 1, 0, 2};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(critics.at(critics.critic_gradient.values_gradient, i * kStride),
                gradient[static_cast<size_t>(i)], 1e-6);
  }
  EXPECT_NEAR(critics.at(critics.critic.value_mean), 3, 1e-6);
  EXPECT_EQ(critics.at(critics.critic.value_max), 5);
  EXPECT_EQ(critics.at(critics.critic.value_min), 1);
}

TEST(ScalarActorLoss, GoesThroughTheSmallerValueOfEachRow) {
  Critics critics(2);
  critics.set_values({1, 2, 5, 4});
  critics.set_bias(0, 0.5f);
  critics.set(critics.actor.log_probability, {-1, 3});
  critics.run(critics.actor_gradient);
  critics.run(critics.actor);
  EXPECT_NEAR(critics.at(critics.actor.loss), (0.25 * (-1 + 3) - (1 + 4.5)) / 2, 1e-6);
  EXPECT_NEAR(critics.at(critics.actor.entropy), -1, 1e-6);
  const std::vector<float> gradient = {-0.5f, 0, 0, -0.5f};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(critics.at(critics.actor_gradient.gradient.hidden, i * kWidth),
              gradient[static_cast<size_t>(i)]);
  }
}

// The gradient of the hidden layer is the value's times the weight, where a ReLU let it pass.
TEST(ScalarCriticGradient, PassesThroughTheHead) {
  for (const bool is_relu : {false, true}) {
    Critics critics(1);
    critics.set(critics.target.head.weight, {2, 3, -1, 4});
    critics.set(critics.target.head.hidden, {1, 0, 0, 5});  // values 2 and 20
    critics.set(critics.target.target, {1});
    critics.critic_gradient.gradient.is_relu = is_relu;
    critics.run(critics.critic_gradient);  // gradients of the values 2 and 38
    const std::vector<float> wanted = {4, is_relu ? 0.0f : 6.0f, is_relu ? 0.0f : -38.0f, 152};
    for (int i = 0; i < 4; ++i) {
      EXPECT_NEAR(critics.at(critics.critic_gradient.gradient.hidden, i),
                  wanted[static_cast<size_t>(i)], 1e-5);
    }
  }
}

TEST(ScalarCriticLoss, ARewardThatIsNotFiniteShowsInTheLoss) {
  for (const float reward : {NAN, INFINITY}) {
    Critics critics(1);
    critics.batch = {reward, 1, 0};
    critics.run(critics.target);
    critics.run(critics.critic_gradient);
    critics.run(critics.critic);
    EXPECT_FALSE(std::isfinite(critics.at(critics.critic.loss)));
  }
}

}  // namespace
}  // namespace millrace

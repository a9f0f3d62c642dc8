// Tests for cpp/learner.cpp.
#include "learner.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

nlohmann::json good() {
  return {{"batch", 512},
          {"updates_per_tick", 3},
          {"learning_starts", 10},
          {"policy_frequency", 2},
          {"gamma", 0.97},
          {"tau", 0.125},
          {"actor_hidden", 128},
          {"critic_hidden", 256},
          {"atoms", 101},
          {"v_min", -20},
          {"v_max", 20},
          {"actor_lr", 3e-4},
          {"critic_lr", 3e-4},
          {"alpha_lr", 3e-4},
          {"lr_decay_steps", 0},
          {"lr_final_share", 1.0},
          {"reward_scaling", "off"},
          {"noise_repeat_max", 1},
          {"weight_decay", 0.001},
          {"beta1", 0.9},
          {"beta2", 0.95},
          {"alpha_init", 0.001},
          {"max_grad_norm", 0},
          {"target_entropy_ratio", 0},
          {"symmetry", true},
          {"threads", 1},
          {"place", "auto"},
          {"observation_normalizer", false},
          {"critic", "scalar"},
          {"network", "plain"}};
}

std::string refusal(const char* key, nlohmann::json value) {
  nlohmann::json section = good();
  section[key] = std::move(value);
  try {
    parse_learner(section);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kInvalid);
    return failure.what();
  }
  return "accepted";
}

TEST(LearnerSpec, ReadsEveryKey) {
  const LearnerSpec spec = parse_learner(good());
  EXPECT_EQ(spec.batch, 512);
  EXPECT_EQ(spec.gathered_rows(), 256);
  EXPECT_FLOAT_EQ(spec.tau, 0.125f);
  EXPECT_FLOAT_EQ(spec.v_min, -20.0f);
  EXPECT_FLOAT_EQ(spec.beta2, 0.95f);
  EXPECT_TRUE(spec.symmetry);
  EXPECT_EQ(spec.critic, CriticKind::kScalar);
  EXPECT_EQ(spec.network, NetworkBody::kPlain);
}

TEST(LearnerSpec, EveryKeyIsNeeded) {
  const nlohmann::json all = good();
  for (const auto& item : all.items()) {
    nlohmann::json section = good();
    section.erase(item.key());
    try {
      parse_learner(section);
      ADD_FAILURE() << item.key();
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.what(), "learner." + item.key() + ": missing");
    }
  }
}

TEST(LearnerSpec, RefusalsNameTheKeyTheRangeAndTheValue) {
  EXPECT_EQ(refusal("tau", 1.5), "learner.tau: must be in 0..1, got 1.5");
  EXPECT_EQ(refusal("gamma", "high"), "learner.gamma: expected a number, got \"high\"");
  EXPECT_EQ(refusal("batch", 2.5), "learner.batch: expected an integer, got 2.5");
  EXPECT_EQ(refusal("policy_frequency", 0), "learner.policy_frequency: must be in 1..1024, got 0");
  EXPECT_EQ(refusal("updates_per_tick", 0), "learner.updates_per_tick: must be in 1..1024, got 0");
  EXPECT_EQ(refusal("symmetry", 1), "learner.symmetry: expected true or false, got 1");
  EXPECT_EQ(refusal("actor_hidden", 130), "learner.actor_hidden: must be a multiple of 4, got 130");
  EXPECT_EQ(refusal("v_max", -20), "learner.v_max: must be above learner.v_min, got -20");
  EXPECT_EQ(refusal("atoms", 1), "learner.atoms: must be in 2..4096, got 1");
  EXPECT_EQ(refusal("critic", "quantile"),
            "learner.critic: must be one of c51, scalar, got \"quantile\"");
  EXPECT_EQ(refusal("network", "deep"),
            "learner.network: must be one of auto, plain, got \"deep\"");
  EXPECT_EQ(refusal("attoms", 1), "learner.attoms: unknown key");
  EXPECT_EQ(refusal("alpha_init", 0), "learner.alpha_init: must be in 1e-08..10000, got 0");
}

TEST(LearnerSpec, AnOddBatchIsLeftToPreflight) { EXPECT_EQ(refusal("batch", 511), "accepted"); }

}  // namespace
}  // namespace millrace

// Tests for cpp/learner_sac.cpp: what does not depend on the algorithm. Updates themselves are
// tested in learner_fastsac_test.cpp and learner_flashsac_test.cpp.
#include "learner_sac.h"

#include <gtest/gtest.h>

#include "flashsac_fixture.h"

namespace millrace {
namespace {

TEST(LearnerSac, AnUpdatesArgumentsAreItsSettings) {
  LearnerSpec spec = small_spec();
  spec.actor_lr = 1e-3f;
  spec.critic_lr = 2e-3f;
  spec.alpha_lr = 3e-3f;
  LearnerSac learner(SacPrograms::make(spec, small_layout()), {}, 9);
  const Arguments arguments = learner.arguments(nullptr, 22, 5);
  EXPECT_EQ(arguments.row_stride, 22u);
  EXPECT_EQ(arguments.seed, 9u);
  EXPECT_EQ(arguments.tick, 5u);
  EXPECT_EQ(arguments.actor_learning_rate, 1e-3f);
  EXPECT_EQ(arguments.critic_learning_rate, 2e-3f);
  EXPECT_EQ(arguments.alpha_learning_rate, 3e-3f);
  EXPECT_EQ(arguments.target_rate, spec.tau);
  EXPECT_EQ(arguments.reward_scale, 1.0f);
}

// The temperature steps with the critics in FastSAC, with the actor in FlashSAC.
TEST(LearnerSac, TheTemperaturesRateFollowsItsOwnSteps) {
  for (LearnerSpec spec : {small_spec(), small_flash_spec()}) {
    spec.policy_frequency = 4;
    spec.lr_decay_steps = 100;
    spec.lr_final_share = 0.5f;
    LearnerSac learner(SacPrograms::make(spec, small_layout()), {}, 9);
    const Arguments arguments = learner.arguments(nullptr, 22, 100);
    EXPECT_EQ(arguments.critic_learning_rate, 0.5f * spec.critic_lr);
    EXPECT_GT(arguments.actor_learning_rate, 0.9f * spec.actor_lr);
    EXPECT_EQ(arguments.alpha_learning_rate, spec.algorithm == Algorithm::kFlashSac
                                                 ? arguments.actor_learning_rate
                                                 : arguments.critic_learning_rate);
  }
}

// Scaling the rewards by hand is the same as by the scale.
TEST(LearnerSac, RewardsOfAnUpdateAreScaled) {
  for (LearnerSpec spec : {small_spec(), small_flash_spec()}) {
    std::vector<float> rows = random_rows(small_layout(), spec.batch, 1);
    LearnerSac scaled(SacPrograms::make(spec, small_layout()), {}, 9);
    LearnerSac plain(SacPrograms::make(spec, small_layout()), {}, 9);
    constexpr float factor = 0.3f;
    scaled.set_reward_scale(factor);
    scaled.update(rows.data(), small_layout().width(), 0);
    for (int r = 0; r < spec.batch; ++r) {
      rows[static_cast<size_t>(r * small_layout().width() + small_layout().reward())] *= factor;
    }
    plain.update(rows.data(), small_layout().width(), 0);
    const auto found = tensors_of(scaled), expected = tensors_of(plain);
    EXPECT_EQ(floats_of(found.at("adam/critic/0/head/weight/m")),
              floats_of(expected.at("adam/critic/0/head/weight/m")));
  }
}

TEST(LearnerSac, DescribesItsPrograms) {
  const LearnerSac learner(SacPrograms::make(small_flash_spec(), small_layout()), {}, 9);
  const nlohmann::json programs = learner.describe().at("programs");
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(programs[1].at("name"), "flashsac/critic_and_actor");
  EXPECT_GT(programs[0].at("ops").size(), 40u);
}

}  // namespace
}  // namespace millrace

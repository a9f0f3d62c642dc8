// Tests for cpp/policy.cpp.
#include "policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "fastsac_fixture.h"

namespace millrace {
namespace {

std::vector<float> observations_of(int count) {
  std::vector<float> observations(count * small_layout().observation_dim);
  for (size_t i = 0; i < observations.size(); ++i) {
    observations[i] = random_normal(random_source(8, kStreamEvent, 0, 0), static_cast<u32>(i));
  }
  return observations;
}

std::vector<float> explore(Policy& policy, const std::vector<float>& observations, uint64_t tick) {
  const int count = static_cast<int>(observations.size()) / small_layout().observation_dim;
  std::vector<float> actions(count * small_layout().action_dim);
  policy.act_exploring(observations.data(), count, 1, tick, actions.data());
  return actions;
}

TEST(Policy, ASnapshotDoesNotChangeUnderTheLearner) {
  const LearnerSpec spec = small_spec();
  const RowLayout layout = small_layout();
  LearnerFastSac learner(spec, layout, {}, 1);
  randomise_networks(learner, 2);
  Policy policy(learner.policy_shape(), 16);
  ASSERT_EQ(policy.parameter_count(), learner.policy_parameter_count());
  policy.load(learner.policy_parameters());
  const std::vector<float> observations = observations_of(16);
  const std::vector<float> before = explore(policy, observations, 3);
  // The collector acts while the learner updates.
  std::thread collector([&] {
    for (int i = 0; i < 50; ++i) EXPECT_EQ(explore(policy, observations, 3), before);
  });
  const std::vector<float> rows = random_rows(layout, spec.batch, 1);
  for (uint64_t i = 0; i < 50; ++i) learner.update(rows.data(), layout.width(), i);
  collector.join();
  policy.load(learner.policy_parameters());
  EXPECT_NE(explore(policy, observations, 3), before);
}

TEST(Policy, ExplorationIsAFunctionOfSeedTickAndRow) {
  LearnerFastSac learner(small_spec(), small_layout(), {}, 1);
  randomise_networks(learner, 2);
  Policy policy(learner.policy_shape(), 16);
  policy.load(learner.policy_parameters());
  const std::vector<float> observations = observations_of(16);
  EXPECT_EQ(explore(policy, observations, 3), explore(policy, observations, 3));
  EXPECT_NE(explore(policy, observations, 3), explore(policy, observations, 4));
  // Row 0 does not depend on how many rows there are (beyond the product's rounding).
  const std::vector<float> few = explore(policy, observations_of(3), 3);
  const std::vector<float> all = explore(policy, observations, 3);
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(few[i], all[i], 1e-6);
}

TEST(Policy, PlaysFromTheActorsTensorsAlone) {
  LearnerSpec spec = small_spec();
  spec.observation_normalizer = true;
  const RowLayout layout = small_layout();
  LearnerFastSac learner(spec, layout, {}, 1);
  randomise_networks(learner, 2);
  const std::vector<float> rows = random_rows(layout, 50, 1);
  learner.normalise_from(rows.data(), 50, layout.width());
  Policy training(learner.policy_shape(), 16), playing(learner.policy_shape(), 16);
  training.load(learner.policy_parameters());

  const auto checkpoint = tensors_of(learner);
  StateRegistry registry;
  playing.register_state(registry);
  for (const StateTensor& tensor : registry.tensors()) {
    ASSERT_EQ(checkpoint.count(tensor.name), 1u) << tensor.name;
    copy(checkpoint.at(tensor.name), tensor);
  }
  playing.state_restored();
  const std::vector<float> observations = observations_of(16);
  std::vector<float> a(16 * 3), b(16 * 3);
  training.act_deterministic(observations.data(), 16, a.data());
  playing.act_deterministic(observations.data(), 16, b.data());
  EXPECT_EQ(a, b);
}

TEST(Policy, TooManyRowsAreABug) {
  Policy policy({5, 3, 16, false}, 2);
  std::vector<float> actions(9);
  EXPECT_THROW(policy.act_deterministic(observations_of(3).data(), 3, actions.data()), Failure);
}

}  // namespace
}  // namespace millrace

// Tests for cpp/acting_policy.cpp.
#include "acting_policy.h"

#include <gtest/gtest.h>

#include "fastsac_fixture.h"

namespace millrace {
namespace {

constexpr int kEnvs = 16;
constexpr uint64_t kSeed = 4;

std::vector<float> observations() {
  return random_rows({small_layout().observation_dim, 1, 1}, kEnvs, 8);
}

std::vector<float> act(HostPolicy& policy, uint64_t tick) {
  std::vector<float> actions(static_cast<size_t>(kEnvs * small_layout().action_dim));
  const std::vector<float> seen = observations();
  policy.act({seen.data(), nullptr}, {tick}, actions.data());
  return actions;
}

TEST(HostPolicy, ActsWithTheSnapshotThatWasPublishedLast) {
  const RowLayout layout = small_layout();
  LearnerFastSac learner(small_spec(), layout, {}, kSeed);
  randomise_networks(learner, 2);
  HostPolicy policy(learner.policy_shape(), kEnvs, kSeed);
  policy.publish(learner);
  const std::vector<float> before = act(policy, 3);
  Policy reference(learner.policy_shape(), kEnvs);
  reference.load(learner.policy_parameters());
  std::vector<float> expected(before.size());
  reference.act_exploring(observations().data(), kEnvs, kSeed, 3, expected.data());
  EXPECT_EQ(before, expected);

  const std::vector<float> rows = random_rows(layout, small_spec().batch, 1);
  learner.update(rows.data(), layout.width(), 0);
  EXPECT_EQ(act(policy, 3), before) << "nothing was published";
  policy.publish(learner);
  EXPECT_NE(act(policy, 3), before);
}

TEST(HostPolicy, SaysBeforehandWhatItAllocates) {
  const PolicyShape shape = {5, 3, 16, false};
  EXPECT_EQ(HostPolicy::bytes_needed(shape, kEnvs),
            Policy(shape, kEnvs).bytes() + HostPolicy(shape, kEnvs, 1).parameter_count() * 4);
  EXPECT_GT(HostPolicy::bytes_needed(shape, 2 * kEnvs), HostPolicy::bytes_needed(shape, kEnvs));
}

TEST(HostPolicy, SaysThatItIsOnTheHost) {
  HostPolicy policy({5, 3, 16, false}, kEnvs, 1);
  EXPECT_EQ(policy.facts().at("place"), "host");
  EXPECT_TRUE(policy.graph_facts().is_null());
}

}  // namespace
}  // namespace millrace

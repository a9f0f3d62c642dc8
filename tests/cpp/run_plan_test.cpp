// Tests for cpp/run_plan.cpp.
#include "run_plan.h"

#include <gtest/gtest.h>

#include "run_fixture.h"

namespace millrace {
namespace {

using nlohmann::json;

std::string refusal(const json& config) {
  try {
    parse_plan(config);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kInvalid);
    return failure.what();
  }
  return "accepted";
}

TEST(RunPlan, ReadsEveryKey) {
  const RunPlan plan = parse_plan(g1_config({{"seed", 9},
                                             {"device", "cpu"},
                                             {"graph", "off"},
                                             {"precision", "fp32"},
                                             {"collector", {{"sync", false}}}}));
  EXPECT_EQ(plan.task, "g1_walk_flat");
  EXPECT_EQ(plan.seed, 9u);
  EXPECT_EQ(plan.device, "cpu");
  EXPECT_EQ(plan.graph, "off");
  EXPECT_EQ(plan.precision, "fp32");
  EXPECT_EQ(plan.num_envs, 4);
  EXPECT_EQ(plan.threads, 1);
  EXPECT_FALSE(plan.synchronous);
  EXPECT_EQ(plan.max_lead_ticks, 4u);
  EXPECT_EQ(plan.capacity_rows, 256u);
  EXPECT_EQ(plan.ingress_depth, 2);
  EXPECT_EQ(plan.learner.batch, 16);
  EXPECT_EQ(parse_plan(cartpole_config({{"env", {{"threads", "auto"}}}})).threads, 0);
}

TEST(RunPlan, WithSymmetryHalfOfTheBatchIsGathered) {
  EXPECT_EQ(parse_plan(cartpole_config()).gathered_rows_per_tick(), 2u * 16);
  EXPECT_EQ(parse_plan(g1_config()).gathered_rows_per_tick(), 2u * 8);
}

TEST(RunPlan, LearningStartsAtTheLargerOfBatchAndWarmUp) {
  EXPECT_EQ(parse_plan(cartpole_config()).threshold_rows(), 5u * 4);
  EXPECT_EQ(parse_plan(cartpole_config({{"learner", {{"batch", 32}}}})).threshold_rows(), 32u);
  // Beyond 32 bits.
  EXPECT_EQ(parse_plan(cartpole_config({{"learner", {{"learning_starts", 1 << 24}}},
                                        {"env", {{"num_envs", 1 << 20}}}}))
                .threshold_rows(),
            uint64_t{1} << 44);
}

TEST(RunPlan, TheReplayGetsItsNumbers) {
  const ReplaySpec spec = parse_plan(g1_config()).replay_spec({98, 29, 101});
  EXPECT_EQ(spec.layout.width(), 430);
  EXPECT_EQ(spec.num_envs, 4u);
  EXPECT_EQ(spec.capacity_rows, 256u);
  EXPECT_EQ(spec.depth, 2);
  EXPECT_EQ(spec.sample_rows, 16u);
  EXPECT_EQ(spec.seed, 1u);
  EXPECT_EQ(spec.threshold_rows, 20u);
}

TEST(RunPlan, RefusalsNameTheKeyTheValueAndWhatIsAllowed) {
  EXPECT_EQ(refusal(cartpole_config({{"device", "gpu"}})),
            "device: 'gpu' is not one of auto, cpu, cuda, metal");
  EXPECT_EQ(refusal(cartpole_config({{"graph", true}})),
            "graph: 'true' is not one of off, auto, on");
  EXPECT_EQ(refusal(cartpole_config({{"algo", "ppo"}})),
            "algo: 'ppo' is not one of fastsac, flashsac");
  EXPECT_EQ(refusal(cartpole_config({{"learner", {{"reward_scaling", "on"}}}})),
            "learner.reward_scaling: must be one of episode, flashsac, off, got \"on\"");
  EXPECT_EQ(refusal(cartpole_config({{"algo", "flashsac"}, {"learner", {{"critic", "scalar"}}}})),
            "learner.critic: scalar is for algo fastsac alone; here c51");
  EXPECT_EQ(refusal(cartpole_config({{"algo", "flashsac"}, {"learner", {{"network", "plain"}}}})),
            "learner.network: plain is for algo fastsac alone; here auto");
  EXPECT_EQ(refusal(cartpole_config({{"env", {{"num_envs", 0}}}})),
            "env.num_envs: 0 is not between 1 and 1048576");
  EXPECT_EQ(refusal(cartpole_config({{"env", {{"num_envs", 4.5}}}})),
            "env.num_envs: expected an integer");
  EXPECT_EQ(refusal(cartpole_config({{"env", {{"threads", 0}}}})),
            "env.threads: 0 is not between 1 and 1024");
  EXPECT_EQ(refusal(cartpole_config({{"env", {{"threads", "two"}}}})),
            "env.threads: expected an integer");
  EXPECT_EQ(refusal(cartpole_config({{"seed", -1}})),
            "seed: -1 is not between 0 and 9223372036854775807");
  EXPECT_EQ(refusal(cartpole_config({{"seed", UINT64_MAX}})),
            "seed: 18446744073709551615 is not between 0 and 9223372036854775807");
  EXPECT_EQ(refusal(cartpole_config({{"collector", {{"sync", "yes"}}}})),
            "collector.sync: expected true or false");
  EXPECT_EQ(refusal(cartpole_config({{"replay", {{"capacity_rows", nullptr}}}})),
            "replay.capacity_rows: is missing");
  EXPECT_EQ(refusal(cartpole_config({{"replay", "none"}})), "replay.pipeline: is missing");
  EXPECT_EQ(refusal(cartpole_config({{"task", 3}})), "task: expected a name");
  EXPECT_NE(refusal(cartpole_config({{"learner", {{"tau", 2}}}})).find("learner.tau"),
            std::string::npos);
}

TEST(RunPlan, ADepthOfNothingIsLeftToPreflight) {
  EXPECT_EQ(parse_plan(cartpole_config({{"replay", {{"ingress_depth", 0}}}})).ingress_depth, 0);
  EXPECT_EQ(parse_plan(cartpole_config({{"replay", {{"ingress_depth", -3}}}})).ingress_depth, -3);
}

}  // namespace
}  // namespace millrace

// Tests for cpp/run.cpp, on real physics: determinism, resuming, the replay's host memory, when
// learning starts, asynchronous collection, stopping and failing.
#include "run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "run_fixture.h"

namespace millrace {
namespace {

using nlohmann::json;
using Training = Run;  // a test has a member of that name

// Words of run/counters.
struct Counters {
  uint64_t tick, collector_tick, updates, has_batch;
};

Counters counters_of(const Tensors& tensors) {
  Counters counters;
  const std::string& bytes = tensors.at("run/counters");
  EXPECT_EQ(bytes.size(), sizeof(counters));
  std::memcpy(&counters, bytes.data(), sizeof(counters));
  return counters;
}

uint64_t rows_seen(const Tensors& tensors) {
  uint64_t count;
  std::memcpy(&count, tensors.at("normalizer/observation/count").data(), sizeof(count));
  return count;
}

struct Outcome {
  json metrics;
  Tensors tensors;
};

Outcome run_of(const json& config, std::vector<uint64_t> stretches) {
  Training run(config);
  json report;
  for (uint64_t ticks : stretches) report = run.advance(ticks);
  return {without_times(report.at("metrics")), tensors_of(run)};
}

// ---- determinism ----

TEST(Run, TheSameSeedGivesTheSameTensorsAndMetrics) {
  for (const json& config : {cartpole_config(), g1_config()}) {
    const Outcome first = run_of(config, {30}), second = run_of(config, {30});
    EXPECT_EQ(differences(first.tensors, second.tensors), Names{});
    EXPECT_EQ(first.metrics, second.metrics);
    EXPECT_GT(counters_of(first.tensors).updates, 0u);
  }
}

TEST(Run, AnotherSeedGivesOtherWeightsStatesAndRows) {
  const Outcome first = run_of(cartpole_config(), {30});
  const Outcome second = run_of(cartpole_config({{"seed", 2}}), {30});
  const Names changed = differences(first.tensors, second.tensors);
  for (const char* name : {"actor/l0/weight", "critic/0/l0/weight", "critic/1/head/weight",
                           "update/observation", "update/step", "replay/rows"}) {
    EXPECT_NE(std::find(changed.begin(), changed.end(), name), changed.end()) << name;
  }
  EXPECT_NE(first.metrics, second.metrics);
}

TEST(Run, HowTicksAreGroupedChangesNothing) {
  const Outcome whole = run_of(cartpole_config(), {20});
  EXPECT_EQ(differences(run_of(cartpole_config(), {10, 10}).tensors, whole.tensors), Names{});
  EXPECT_EQ(differences(run_of(cartpole_config(), {1, 4, 0, 15}).tensors, whole.tensors), Names{});
}

TEST(Run, TheNumberOfWorkersChangesNothing) {
  // 40 environments: three slices of the update step.
  for (json config :
       {cartpole_config({{"env", {{"num_envs", 40}}}}), g1_config({{"env", {{"num_envs", 20}}}})}) {
    const Outcome one = run_of(config, {12});
    config["env"]["threads"] = 2;
    const Outcome two = run_of(config, {12});
    EXPECT_EQ(differences(one.tensors, two.tensors), Names{});
    EXPECT_EQ(one.metrics, two.metrics);
  }
}

// ---- resuming ----

struct ResumeCase {
  std::string name;
  json config;
  uint64_t ticks;
};

std::ostream& operator<<(std::ostream& out, const ResumeCase& each) { return out << each.name; }

class Resume : public testing::TestWithParam<ResumeCase> {};

TEST_P(Resume, TwoHalvesEqualTheWhole) {
  const json& config = GetParam().config;
  const uint64_t ticks = GetParam().ticks;
  const Outcome whole = run_of(config, {ticks, ticks});
  const Outcome half = run_of(config, {ticks});
  Training resumed(config);
  restore(resumed, half.tensors, true);
  EXPECT_EQ(differences(tensors_of(resumed), half.tensors), Names{});
  const json metrics = resumed.advance(ticks).at("metrics");
  EXPECT_EQ(differences(tensors_of(resumed), whole.tensors), Names{});
  EXPECT_EQ(without_times(metrics), whole.metrics);
}

INSTANTIATE_TEST_SUITE_P(
    , Resume,
    testing::Values(
        ResumeCase{"BeforeTheFirstRequest", cartpole_config(), 4},
        ResumeCase{"FirstBatchOutstanding", cartpole_config(), 5},
        ResumeCase{"WhileLearning", cartpole_config(), 17},
        ResumeCase{"RingWrapped", cartpole_config({{"replay", {{"capacity_rows", 64}}}}), 40},
        ResumeCase{"WrapInsideASlot", cartpole_config({{"replay", {{"capacity_rows", 50}}}}), 33},
        ResumeCase{"SmallestRing",
                   cartpole_config({{"replay", {{"capacity_rows", 20}, {"ingress_depth", 4}}}}),
                   21},
        ResumeCase{"Depth1", cartpole_config({{"replay", {{"ingress_depth", 1}}}}), 20},
        ResumeCase{"Depth3", cartpole_config({{"replay", {{"ingress_depth", 3}}}}), 20},
        ResumeCase{"Normalised", cartpole_config({{"learner", {{"observation_normalizer", true}}}}),
                   20},
        ResumeCase{"PlainSac",
                   cartpole_config({{"learner", {{"critic", "scalar"}, {"network", "plain"}}}}),
                   20},
        ResumeCase{"TwoWorkers",
                   cartpole_config({{"env", {{"threads", 2}, {"num_envs", 36}}},
                                    {"replay", {{"capacity_rows", 512}}}}),
                   10},
        ResumeCase{"G1Symmetric", g1_config(), 80},
        ResumeCase{"FlashSac", flashsac(cartpole_config()), 20},
        ResumeCase{"G1FlashSac", flashsac(g1_config()), 80},
        ResumeCase{"G1NormalisedAndWrapped",
                   g1_config({{"learner", {{"observation_normalizer", true}}},
                              {"replay", {{"capacity_rows", 60}}}}),
                   25}),
    [](const testing::TestParamInfo<ResumeCase>& info) { return info.param.name; });

TEST(Run, TheResumeCasesAreWhatTheirNamesSay) {
  EXPECT_EQ(counters_of(run_of(cartpole_config(), {4}).tensors).has_batch, 0u);
  const Counters outstanding = counters_of(run_of(cartpole_config(), {5}).tensors);
  EXPECT_EQ(outstanding.has_batch, 1u);
  EXPECT_EQ(outstanding.updates, 0u);
  Training wrapped(cartpole_config({{"replay", {{"capacity_rows", 64}}}}));
  EXPECT_EQ(wrapped.advance(40).at("replay").at("ring_wraps"), 2);
  // Robots fell and got up again.
  const std::string episodes = run_of(g1_config(), {80}).tensors.at("update/episode");
  EXPECT_NE(episodes, std::string(episodes.size(), '\0'));
}

TEST(Run, AResumedReportCountsOnlyItsOwnUpdates) {
  const Outcome half = run_of(cartpole_config(), {40});
  Training resumed(cartpole_config());
  restore(resumed, half.tensors, true);
  const json metrics = resumed.advance(10).at("metrics");
  // 2 updates for each tick of 4 environments.
  EXPECT_NEAR(
      metrics.at("updates_per_s").get<double>() / metrics.at("env_steps_per_s").get<double>(), 0.5,
      1e-9);
}

TEST(Run, WithoutTheReplayLearningWaitsForRowsAgain) {
  for (bool normalised : {false, true}) {
    const json config = cartpole_config({{"learner", {{"observation_normalizer", normalised}}}});
    const Outcome half = run_of(config, {20});
    Training resumed(config);
    restore(resumed, half.tensors, false);
    const json waiting = resumed.advance(5);
    EXPECT_EQ(waiting.at("tick"), 25);
    EXPECT_EQ(waiting.at("env_steps"), 100);
    EXPECT_EQ(waiting.at("updates"), 30);
    EXPECT_EQ(waiting.at("replay").at("size"), 20);
    if (normalised) {
      EXPECT_EQ(rows_seen(tensors_of(resumed)), 100u);  // the new rows, too
    }
    EXPECT_EQ(resumed.advance(3).at("updates"), 36);
  }
}

TEST(Run, RestoringAfterTheFirstTickIsRefused) {
  Training run(cartpole_config());
  run.advance(1);
  EXPECT_THROW(run.restored(true), Failure);
}

TEST(Run, ACheckpointWithoutAUsablePhysicsStateIsRefused) {
  Tensors tensors = run_of(cartpole_config(), {3}).tensors;
  const double bad = std::numeric_limits<double>::quiet_NaN();
  std::memcpy(&tensors.at("physics/qpos")[0], &bad, sizeof(bad));
  Training resumed(cartpole_config());
  try {
    restore(resumed, tensors, true);
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kInvalid) << failure.what();
  }
}

// ---- the replay ----

TEST(Run, HostBytesOfTheReplayAreTheSlotsWhateverTheCapacity) {
  uint64_t device_bytes[2];
  for (int i = 0; i < 2; ++i) {
    const uint64_t capacity = i == 0 ? 4096 : 65536;
    const json replay =
        Training(cartpole_config({{"replay", {{"capacity_rows", capacity}, {"ingress_depth", 3}}}}))
            .facts()
            .at("replay");
    EXPECT_EQ(replay.at("row_bytes"), (4 * 5 + 1 + 3) * 4);
    EXPECT_EQ(replay.at("host_bytes"), 3 * 4 * (4 * 5 + 1 + 3) * 4);
    EXPECT_EQ(replay.at("capacity_rows"), capacity);
    device_bytes[i] = replay.at("device_bytes");
    // Ring and two batches of updates_per_tick x batch rows.
    EXPECT_EQ(device_bytes[i],
              (capacity + 2 * 2 * 16) * replay.at("row_stride_bytes").get<uint64_t>());
  }
  EXPECT_LT(device_bytes[0], device_bytes[1]);
}

TEST(Run, NoUpdateBeforeTheThreshold) {
  Training run(cartpole_config());
  EXPECT_EQ(run.facts().at("replay").at("threshold_rows"), 20);
  for (int tick = 1; tick <= 5; ++tick) {
    const json report = run.advance(1);
    EXPECT_EQ(report.at("updates"), 0) << tick;
    EXPECT_EQ(report.at("replay").at("size"), 4 * tick);
    EXPECT_FALSE(report.at("metrics").contains("loss/critic"));
  }
  const json report = run.advance(1);
  EXPECT_EQ(report.at("updates"), 2);
  EXPECT_TRUE(report.at("metrics").contains("loss/critic"));
  // A batch above what learning_starts asks for is the threshold.
  Training large(cartpole_config({{"learner", {{"batch", 40}}}}));
  EXPECT_EQ(large.advance(10).at("updates"), 0);
  EXPECT_EQ(large.advance(1).at("updates"), 2);
}

TEST(Run, ReportsRowsTimesAndFacts) {
  Training run(cartpole_config());
  const json report = run.advance(10);
  EXPECT_EQ(report.at("tick"), 10);
  EXPECT_EQ(report.at("env_steps"), 40);
  EXPECT_EQ(report.at("stopped"), false);
  for (const char* name : {"published", "submitted", "committed"}) {
    EXPECT_EQ(report.at("replay").at(name), 40) << name;
  }
  for (const char* name : {"time/tick_ms", "time/act_ms", "time/physics_ms", "time/update_ms",
                           "time/learn_ms", "time/replay_ms"}) {
    EXPECT_GT(report.at("metrics").at(name).get<double>(), 0.0) << name;
  }
  const json facts = run.facts();
  EXPECT_EQ(facts.at("rng").at("algorithm"), "philox4x32-10");
  EXPECT_EQ(facts.at("threads").at("workers"), 1);
  EXPECT_EQ(facts.at("threads").at("blas"), 1);
  EXPECT_EQ(facts.at("graphs").at("learner").at("effective"), "off");
  EXPECT_EQ(facts.at("graphs").at("policy").at("effective"), "off");
  EXPECT_EQ(facts.at("policy").at("place"), "host");
  EXPECT_EQ(facts.at("learner").at("programs").size(), 2u);
  EXPECT_EQ(facts.at("carriers").at("list").size(), run.registry().tensors().size());
  EXPECT_EQ(facts.at("physics").at("first_bad"), "");
}

TEST(Run, SymmetryNeedsAMirrorImage) {
  try {
    Training run(cartpole_config({{"learner", {{"symmetry", true}}}}));
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kInvalid);
    EXPECT_STREQ(failure.what(), "learner.symmetry: cartpole_swingup has no mirror image");
  }
}

// ---- asynchronous collection ----

class Asynchronous : public testing::TestWithParam<std::pair<int, int>> {
 protected:
  json config() const {
    return cartpole_config({{"collector", {{"sync", false}, {"max_lead_ticks", GetParam().second}}},
                            {"replay", {{"ingress_depth", GetParam().first}}}});
  }
  void expect_bounds(const json& report) const {
    const uint64_t tick = report.at("tick"), steps = report.at("env_steps");
    const uint64_t collected = steps / 4;
    EXPECT_GE(collected, tick);
    EXPECT_LE(collected, tick + static_cast<uint64_t>(GetParam().second));
    EXPECT_EQ(report.at("replay").at("published"), steps);
    EXPECT_EQ(report.at("replay").at("committed"), steps);
    EXPECT_LE(report.at("updates").get<uint64_t>(), 2 * tick);
  }
};

TEST_P(Asynchronous, StaysWithinItsBoundsAndComesToRest) {
  Watchdog watchdog(30);
  Training run(config());
  expect_bounds(run.advance(40));
  uint64_t tick = 40;
  for (int stretch = 0; stretch < 60; ++stretch) {
    const json report = run.advance(1);
    EXPECT_EQ(report.at("tick"), ++tick);
    expect_bounds(report);
  }
  // Learning begins with the fifth tick at the latest.
  EXPECT_GE(run.advance(0).at("updates"), 2 * (100 - 4));
}

TEST_P(Asynchronous, Resumes) {
  Watchdog watchdog(30);
  Tensors half;
  {
    Training run(config());
    run.advance(20);
    half = tensors_of(run);
  }
  for (bool with_replay : {true, false}) {
    Training resumed(config());
    restore(resumed, half, with_replay);
    const json report = resumed.advance(20);
    EXPECT_EQ(report.at("tick"), 40);
    EXPECT_GT(report.at("updates").get<uint64_t>(), counters_of(half).updates);
    EXPECT_LE(report.at("updates").get<uint64_t>(), 2u * 40);
    EXPECT_EQ(report.at("replay").at("committed"), report.at("replay").at("published"));
  }
}

INSTANTIATE_TEST_SUITE_P(DepthAndLead, Asynchronous,
                         testing::Values(std::pair{1, 1}, std::pair{1, 4}, std::pair{2, 4},
                                         std::pair{3, 2}, std::pair{3, 8}),
                         [](const testing::TestParamInfo<std::pair<int, int>>& info) {
                           return "Depth" + std::to_string(info.param.first) + "Lead" +
                                  std::to_string(info.param.second);
                         });

// The collector may turn the smallest ring over several times while the learner works on one tick.
TEST(Run, AsynchronousWithANormaliserAndTheSmallestRing) {
  Watchdog watchdog(30);
  Training run(cartpole_config(
      {{"collector", {{"sync", false}, {"max_lead_ticks", 8}}},
       {"replay", {{"ingress_depth", 1}, {"capacity_rows", 20}}},
       {"learner",
        {{"observation_normalizer", true}, {"updates_per_tick", 16}, {"critic_hidden", 64}}}}));
  for (int stretch = 0; stretch < 5; ++stretch) {
    const json report = run.advance(20);
    EXPECT_EQ(rows_seen(tensors_of(run)), report.at("replay").at("committed").get<uint64_t>());
  }
}

// ---- stopping and failing ----

TEST(Run, StopsAtATickBoundaryFromAnotherThread) {
  Watchdog watchdog(30);
  for (bool sync : {true, false}) {
    Training run(cartpole_config({{"collector", {{"sync", sync}}}}));
    run.advance(7);
    std::thread other([&] { run.stop(); });
    const json report = run.advance(uint64_t{1} << 40);
    other.join();
    EXPECT_EQ(report.at("stopped"), true);
    EXPECT_EQ(report.at("replay").at("committed"), report.at("env_steps"));
    if (sync) {
      EXPECT_EQ(report.at("env_steps"), 4 * report.at("tick").get<uint64_t>());
    }
    // It stays stopped, and what it holds is a checkpoint like any other.
    EXPECT_EQ(run.advance(5).at("tick"), report.at("tick"));
    Training resumed(cartpole_config({{"collector", {{"sync", sync}}}}));
    restore(resumed, tensors_of(run), true);
    EXPECT_EQ(resumed.advance(3).at("tick"), report.at("tick").get<uint64_t>() + 3);
  }
}

TEST(Run, StopsBeforeTheFirstTick) {
  Watchdog watchdog(30);
  Training run(cartpole_config());
  run.stop();
  EXPECT_EQ(run.advance(5).at("tick"), 0);
}

TEST(Run, ARewardThatIsNotFiniteIsNamedAndCounted) {
  Training run(cartpole_config({{"rewards", {{"lean", {{"weight", 1}, {"expr", "1 / 0"}}}}}}));
  const json report = run.advance(5);
  EXPECT_EQ(report.at("metrics").at("non_finite"), 5 * 4);
  const char* first = "tick 0, environment 0: rewards.lean was not finite";
  EXPECT_EQ(report.at("first_bad"), first);
  const json physics = run.facts().at("physics");
  EXPECT_EQ(physics.at("non_finite"), 5 * 4);
  EXPECT_EQ(physics.at("first_bad"), first);
}

// Weights that are not finite upset the physics: every episode ends at once, rows stay finite, the
// cause is counted and named, and a run whose every update is left out fails.
TEST(Run, ActionsThatAreNotFiniteEndEpisodesAndThenTheRun) {
  Training run(cartpole_config());
  const StateTensor weights = tensor_named(run, "actor/l0/weight");
  static_cast<float*>(weights.data)[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(run.advance(5).at("metrics").at("unstable"), 5 * 4);
  const json physics = run.facts().at("physics");
  EXPECT_EQ(physics.at("unstable"), 5 * 4);
  EXPECT_EQ(physics.at("unstable_causes").at("ctrl"), 5 * 4);
  EXPECT_EQ(physics.at("first_bad"), "tick 0, environment 0: physics was unstable");
  try {
    run.advance(3);
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kDevice);
    const std::string message = failure.what();
    EXPECT_NE(message.find("training diverged: in the last 6 updates "), std::string::npos)
        << message;
    EXPECT_NE(message.find("(in learner.tick 8 on thread learner)"), std::string::npos) << message;
  }
  // Neither what was observed nor what the critics learned took harm.
  for (const char* name : {"update/observation", "critic/0/l0/weight", "target/1/head/weight"}) {
    const StateTensor tensor = tensor_named(run, name);
    for (size_t i = 0; i < tensor.bytes() / sizeof(float); ++i) {
      EXPECT_TRUE(std::isfinite(static_cast<const float*>(tensor.data)[i])) << name;
    }
  }
}

TEST(Run, AFullDiskUnderTheTraceIsTheFirstError) {
  Watchdog watchdog(30);
  for (bool sync : {true, false}) {
    Training run(cartpole_config({{"collector", {{"sync", sync}}}, {"trace_path", "/dev/full"}}));
    try {
      run.advance(uint64_t{1} << 40);
      FAIL();
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Code::kResource);
      const std::string message = failure.what();
      EXPECT_NE(message.find("cannot write the trace"), std::string::npos) << message;
      EXPECT_NE(message.find("(in trace.write "), std::string::npos) << message;
      EXPECT_NE(message.find(" on thread trace)"), std::string::npos) << message;
    }
    EXPECT_EQ(run.first_error().get()->operation, "trace.write");
    EXPECT_THROW(run.advance(1), Failure);
    // The manifest of a failed run reads these; no thread works on them any more.
    EXPECT_GT(run.facts().at("replay").at("published"), 0);
    EXPECT_FALSE(tensors_of(run).empty());
  }
}

TEST(Run, WritesATrace) {
  const std::string path = testing::TempDir() + "run_test_trace.json";
  Training(cartpole_config({{"trace_path", path}})).advance(8);
  std::FILE* file = std::fopen(path.c_str(), "r");
  ASSERT_NE(file, nullptr);
  const json trace = json::parse(file);
  std::fclose(file);
  std::remove(path.c_str());
  Names names;
  for (const json& event : trace.at("traceEvents")) names.push_back(event.at("name"));
  for (const char* name : {span::kEnvStep, span::kUpdateCritic, span::kReplayAdd}) {
    EXPECT_GE(std::count(names.begin(), names.end(), name), 2) << name;
  }
}

}  // namespace
}  // namespace millrace

// Tests for cpp/device_policy.cpp: on every backend it acts as the policy on the host does, with
// snapshots of a learner that goes on.
#include "device_policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>

#include "flashsac_fixture.h"
#include "graph_backends.h"

namespace millrace {
namespace {

constexpr int kEnvs = 33;
constexpr uint64_t kSeed = 4;
constexpr uint64_t kTicks = 8;  // some of them replay a graph
constexpr float kRounding = 1e-5f;

// Widths of no whole number of warps or tiles.
LearnerSpec fastsac() {
  LearnerSpec spec = small_spec();
  spec.actor_hidden = 72;
  spec.actor_lr = 0.01f;  // so that every update shows
  return spec;
}

LearnerSpec normalised(LearnerSpec spec) {
  spec.observation_normalizer = true;
  return spec;
}

LearnerSpec plain_sac() {
  LearnerSpec spec = fastsac();
  spec.network = NetworkBody::kPlain;
  spec.critic = CriticKind::kScalar;
  return spec;
}

LearnerSpec flashsac() {
  LearnerSpec spec = small_flash_spec();
  spec.actor_hidden = 24;
  spec.actor_lr = 0.01f;
  return spec;
}

// The walking task's vectors.

RowLayout layout() { return {98, 29, 101}; }

// Lets a test do something while a snapshot is written.
class WatchedLearner final : public LearnerSac {
 public:
  using LearnerSac::LearnerSac;
  void copy_policy_to(float* parameters) override {
    LearnerSac::copy_policy_to(parameters);
    if (while_copying) while_copying();
  }
  std::function<void()> while_copying;
};

// A learner and the policy that acts with its snapshots, on one backend.
struct Rig {
  explicit Rig(const std::string& name, const LearnerSpec& of = fastsac(),
               Noise noise = Noise::kOfTheTick, GraphPolicy graph = GraphPolicy::kAuto)
      : backend(graph_backend_api(name)),
        learner_stream(backend),
        transfer(backend),
        spec(of),
        learner(SacPrograms::make(spec, layout()), {}, kSeed, backend, learner_stream,
                Precision::kFp32),
        policy(backend, learner.policy_shape(), kEnvs, kSeed, noise, graph, nullptr),
        reference(learner.policy_shape(), kEnvs),
        rows(random_rows(layout(), spec.batch, 1)),
        device_rows(backend, Memory::Kind::kDevice, rows.size() * sizeof(float)),
        pinned(backend, Memory::Kind::kPinnedHost, (observed() + acted()) * sizeof(float)) {
    randomise_networks(learner, 2);
    learner.state_restored();
    transfer.write(device_rows.floats(), rows);
    if (spec.observation_normalizer) {
      learner.normalise_from(rows.data(), static_cast<uint64_t>(spec.batch), layout().width());
    }
    for (size_t i = 0; i < observed(); ++i) {
      pinned.floats()[i] = random_normal(random_source(8, kStreamEvent, 0, 0), static_cast<u32>(i));
    }
  }

  static size_t observed() { return static_cast<size_t>(kEnvs * layout().observation_dim); }
  static size_t acted() { return static_cast<size_t>(kEnvs * layout().action_dim); }

  void update(uint64_t index) { learner.update(device_rows.floats(), layout().width(), index); }
  std::vector<float> act(const Draws& draws, const float* on_device = nullptr) {
    float* actions = pinned.floats() + observed();
    policy.act({on_device == nullptr ? pinned.floats() : nullptr, on_device}, draws, actions);
    return {actions, actions + acted()};
  }
  // What the host computes from the learner's weights as they are now.
  std::vector<float> expected(const Draws& draws) {
    reference.load(learner.policy_parameters());
    std::vector<float> actions(acted());
    reference.act_exploring(pinned.floats(), kEnvs, kSeed, draws.tick, actions.data(),
                            draws.drawn_at);
    return actions;
  }

  Backend backend;
  Stream learner_stream;
  Transfer transfer;
  const LearnerSpec spec;
  WatchedLearner learner;
  DevicePolicy policy;
  Policy reference;
  const std::vector<float> rows;
  Memory device_rows, pinned;
};

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

class DevicePolicyTest : public testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { EXPECT_EQ(FakeCuda::take_violations(), std::vector<std::string>{}); }
};

MR_ON_EACH_GRAPH_BACKEND(DevicePolicyTest);

TEST_P(DevicePolicyTest, ActsAsThePolicyOnTheHostWithEverySnapshot) {
  for (const LearnerSpec& spec : {fastsac(), normalised(fastsac()), plain_sac(), flashsac()}) {
    for (const GraphPolicy graph : {GraphPolicy::kOff, GraphPolicy::kAuto}) {
      SCOPED_TRACE(std::string(to_string(graph)) + ", " + to_string(spec.algorithm));
      Rig rig(GetParam(), spec, Noise::kOfTheTick, graph);
      std::vector<float> last;
      for (uint64_t tick = 0; tick < kTicks; ++tick) {
        rig.policy.publish(rig.learner);
        const std::vector<float> actions = rig.act({tick});
        EXPECT_LE(largest_difference(actions, rig.expected({tick})), kRounding) << tick;
        EXPECT_NE(actions, last);
        last = actions;
        rig.update(tick);
      }
      const nlohmann::json facts = rig.policy.graph_facts();
      EXPECT_EQ(facts.at("effective"), graph == GraphPolicy::kOff ? "eager" : "graph") << facts;
      rig.policy.finish();
    }
  }
}

// The draws change every tick; a graph must not keep those it was captured with.
TEST_P(DevicePolicyTest, TakesTheDrawsOfEachRobotsTick) {
  for (const LearnerSpec& spec : {fastsac(), flashsac()}) {
    SCOPED_TRACE(to_string(spec.algorithm));
    Rig rig(GetParam(), spec, Noise::kOfEachRow);
    rig.policy.publish(rig.learner);
    std::vector<uint64_t> drawn_at(kEnvs);
    std::vector<float> last;
    for (uint64_t tick = 0; tick < kTicks; ++tick) {
      for (size_t i = 0; i < drawn_at.size(); ++i) drawn_at[i] = 100 * tick + i % 5;
      const std::vector<float> actions = rig.act({tick, drawn_at.data()});
      EXPECT_LE(largest_difference(actions, rig.expected({tick, drawn_at.data()})), kRounding);
      EXPECT_NE(actions, last);
      last = actions;
    }
    EXPECT_GT(rig.policy.graph_facts().at("replays"), 0);
    EXPECT_THROW(rig.act({0}), Failure) << "draws of another kind";
    rig.policy.finish();
  }
}

TEST_P(DevicePolicyTest, ReadsObservationsWhereTheDeviceHasThem) {
  Rig rig(GetParam());
  rig.policy.publish(rig.learner);
  Memory there(rig.backend, Memory::Kind::kDevice, Rig::observed() * sizeof(float));
  rig.transfer.write(there.floats(), {rig.pinned.floats(), rig.pinned.floats() + Rig::observed()});
  for (uint64_t tick = 0; tick < kTicks; ++tick) {  // one graph, two addresses
    EXPECT_EQ(rig.act({tick}, there.floats()), rig.act({tick})) << tick;
  }
  rig.policy.finish();
}

TEST_P(DevicePolicyTest, ASnapshotDoesNotChangeUnderTheLearner) {
  Rig rig(GetParam());
  rig.policy.publish(rig.learner);
  const std::vector<float> before = rig.act({3});
  for (uint64_t i = 0; i < 5; ++i) rig.update(i);
  EXPECT_EQ(rig.act({3}), before);
  rig.policy.publish(rig.learner);
  EXPECT_GT(largest_difference(rig.act({3}), before), 100 * kRounding);
  rig.policy.finish();
}

TEST_P(DevicePolicyTest, AnActWhileASnapshotIsWrittenHasTheOneBefore) {
  Rig rig(GetParam());
  const std::vector<float> before = rig.expected({3});
  rig.policy.publish(rig.learner);  // nobody has acted with it yet
  rig.update(0);
  std::vector<float> meanwhile;
  rig.learner.while_copying = [&] { meanwhile = rig.act({3}); };
  rig.policy.publish(rig.learner);
  EXPECT_LE(largest_difference(meanwhile, before), kRounding);
  EXPECT_LE(largest_difference(rig.act({3}), rig.expected({3})), kRounding);
  EXPECT_GT(largest_difference(rig.expected({3}), before), 10 * kRounding);
  rig.policy.finish();
}

// The learner publishes as fast as it can; every act must be one of its versions as a whole.
TEST_P(DevicePolicyTest, ActsWithWholeVersionsWhileTheLearnerGoesOn) {
  constexpr uint64_t kVersions = 30;
  constexpr uint64_t kTick = 3;
  Rig rig(GetParam());
  std::vector<std::vector<float>> versions = {rig.expected({kTick})};
  rig.policy.publish(rig.learner);
  std::vector<std::vector<float>> acts;
  std::thread collector([&] {
    for (uint64_t i = 0; i < 2 * kVersions; ++i) acts.push_back(rig.act({kTick}));
    rig.policy.finish();
  });
  for (uint64_t version = 0; version < kVersions; ++version) {
    rig.update(version);
    rig.policy.publish(rig.learner);
    versions.push_back(rig.expected({kTick}));
  }
  collector.join();
  size_t oldest = 0;
  for (const std::vector<float>& actions : acts) {
    while (oldest < versions.size() && largest_difference(actions, versions[oldest]) > kRounding) {
      ++oldest;
    }
    ASSERT_LT(oldest, versions.size()) << "an act of no version, or of one that was replaced";
  }
  for (size_t i = 1; i < versions.size(); ++i) {
    EXPECT_GT(largest_difference(versions[i], versions[i - 1]), 10 * kRounding) << i;
  }
}

TEST_P(DevicePolicyTest, SaysBeforehandWhatItAllocatesAndAllocatesNothingLater) {
  Rig rig(GetParam(), normalised(fastsac()));
  EXPECT_EQ(rig.policy.bytes(),
            DevicePolicy::bytes_needed(rig.backend.api(), rig.learner.policy_shape(), kEnvs));
  const uint64_t epoch = rig.backend.memory_epoch();
  for (uint64_t tick = 0; tick < kTicks; ++tick) {
    rig.policy.publish(rig.learner);
    rig.act({tick});
  }
  EXPECT_EQ(rig.backend.memory_epoch(), epoch);
  rig.policy.finish();
}

TEST_P(DevicePolicyTest, TellsWhatATickCopies) {
  Rig rig(GetParam(), normalised(fastsac()));
  const nlohmann::json facts = rig.policy.facts();
  EXPECT_EQ(facts.at("place"), "device");
  EXPECT_EQ(facts.at("precision"), "fp32");
  EXPECT_EQ(facts.at("copied_bytes_per_tick").at("actions"), kEnvs * 29 * 4);
}

}  // namespace
}  // namespace millrace

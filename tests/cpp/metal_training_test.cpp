// Whole runs on Metal's modules over their fake device: one thread submits everything, so the
// policy acts and the update step runs on the host, and the learner thread drives the replay.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "each_backend.h"
#include "fake_metal.h"
#include "run.h"
#include "run_fixture.h"

namespace millrace {
namespace {

using json = nlohmann::json;
using Training = Run;  // a test has a member of that name

constexpr uint64_t kTicks = 90;     // the ring of 256 rows goes round
constexpr uint64_t kFewTicks = 14;  // of which the last eight update
constexpr int kTimeout = 2;         // MTLCommandBufferErrorTimeout

class MetalTraining : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_fake_metal()) GTEST_SKIP() << "the fake device was not built: tools/setup";
  }
  Watchdog watchdog_{120};
};

json with_learner_on(const char* place, json config = cartpole_config()) {
  config["learner"]["place"] = place;
  return config;
}

TEST_F(MetalTraining, ReplayOnTheDeviceChangesNothing) {
  for (const char* pipeline : {"device_resident", "cpu_pinned_double_buffer"}) {
    for (bool has_normaliser : {false, true}) {
      SCOPED_TRACE(std::string(pipeline) + (has_normaliser ? " with statistics" : ""));
      const json config = with_learner_on(
          "host", cartpole_config({{"replay", {{"pipeline", pipeline}}},
                                   {"learner", {{"observation_normalizer", has_normaliser}}}}));
      Training cpu(config, backend_cpu()), metal(config, fake_metal());
      cpu.advance(kTicks);
      metal.advance(kTicks);
      EXPECT_EQ(differences(tensors_of(metal), tensors_of(cpu)), Names{});
      EXPECT_EQ(metal.facts().at("replay").at("submit_thread"), "learner");
      EXPECT_EQ(metal.facts().at("policy").at("place"), "host");
      EXPECT_EQ(metal.facts().at("graphs").at("update").at("place"), "host");
    }
  }
}

std::vector<float> floats_of(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// Share of the second's length that the first is away from it.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, length = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    length += b[i] * b[i];
  }
  return std::sqrt(difference / std::max(length, 1e-12));
}

// The learner adds up in another order than the CPU's, so its weights are close, not equal.
TEST_F(MetalTraining, TheLearnerFollowsThatOfTheCpuEagerlyAndReplayed) {
  Training cpu(with_learner_on("host"), backend_cpu());
  cpu.advance(kFewTicks);
  const Tensors expected = tensors_of(cpu);
  for (const char* graph : {"off", "auto"}) {
    SCOPED_TRACE(graph);
    Training metal(with_learner_on("device", cartpole_config({{"graph", graph}})), fake_metal());
    metal.advance(kFewTicks);
    const json facts = metal.facts();
    EXPECT_EQ(facts.at("learner").at("place"), "device");
    EXPECT_EQ(facts.at("policy").at("place"), "host");
    uint64_t replays = 0;
    for (const json& program : facts.at("graphs")) {
      if (program.is_object()) replays += program.value("replays", 0);
    }
    EXPECT_EQ(replays > 0, std::string(graph) == "auto") << facts.at("graphs").dump(1);
    const Tensors found = tensors_of(metal);
    int compared = 0;
    for (const auto& [name, bytes] : expected) {
      if (name.find("/weight") == std::string::npos) continue;
      ++compared;
      EXPECT_LT(distance(floats_of(found.at(name)), floats_of(bytes)), 1e-3) << name;
    }
    EXPECT_GT(compared, 5);
  }
}

TEST_F(MetalTraining, AsynchronousComesToRestWithEveryRowCommitted) {
  Training run(with_learner_on("host", cartpole_config({{"collector", {{"sync", false}}}})),
               fake_metal());
  const json report = run.advance(kTicks);
  EXPECT_EQ(report.at("replay").at("published"), report.at("replay").at("committed"));
}

TEST_F(MetalTraining, ACommandBufferThatFailsIsTheFirstErrorAndNothingHangs) {
  for (uint64_t at : {0, 1, 7, 40}) {
    SCOPED_TRACE(at);
    Training run(with_learner_on("host"), fake_metal());
    fake_metal_device().fail_command_buffer(at, kTimeout);
    EXPECT_THROW(run.advance(kTicks), Failure);
    ASSERT_TRUE(run.first_error().failed());
    const std::string message = run.first_error().get()->message;
    EXPECT_NE(message.find(": 2 this command buffer was told to fail"), std::string::npos)
        << message;
  }
}

TEST_F(MetalTraining, TheUpdateStepIsRefusedThere) {
  const json config = cartpole_config({{"collector", {{"update", "device"}}}});
  try {
    Training run(config, fake_metal());
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("one queue"), std::string::npos) << failure.what();
  }
}

}  // namespace
}  // namespace millrace

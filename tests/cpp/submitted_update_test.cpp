// Tests for cpp/submitted_update.cpp: a collector and a submit thread round one update step.
#include "submitted_update.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "each_backend.h"
#include "remote_backend.h"
#include "run_fixture.h"
#include "sim_parts.h"
#include "submit_thread.h"

namespace millrace {
namespace {

constexpr int kEnvs = 4;
constexpr uint64_t kSeed = 3;

// Robots, a replay with slots on the device, and the thread that serves both.
struct Rig {
  explicit Rig(const BackendApi& api, GraphPolicy policy = GraphPolicy::kAuto)
      : backend(api),
        parts(cartpole_config(), kEnvs, 1, kSeed, &backend),
        replay(backend, replay_spec(parts.task->layout), first_error),
        update(std::make_unique<SubmittedUpdate>(
            backend, *parts.task,
            HostState{parts.update->state(), parts.physics->state_memory(), parts.update->memory(),
                      parts.update->outcomes()},
            kEnvs, GraphSpec{"update", policy, ""}, replay.doorbell(), nullptr)),
        submit(std::make_unique<SubmitThread>(replay, update.get(), first_error, nullptr)) {
    parts.update->start_episodes(*parts.physics, true);
  }
  ~Rig() {
    replay.close();
    submit.reset();
  }

  static ReplaySpec replay_spec(const RowLayout& layout) {
    ReplaySpec spec{layout, kEnvs, 64, 2, 8, kSeed, 1};
    spec.slots = Place::kDevice;
    return spec;
  }

  Receipt tick(uint64_t number) {
    const Receipt step = parts.physics->step(parts.update->actions(), number);
    float* rows = replay.claim();
    const Receipt receipt = update->run(step, parts.update->arguments(number), rows,
                                        static_cast<uint64_t>(parts.task->layout.width()));
    replay.publish();
    return receipt;
  }

  Watchdog watchdog{30};
  Backend backend;
  SimParts parts;
  FirstError first_error;
  Replay replay;
  std::unique_ptr<SubmittedUpdate> update;
  std::unique_ptr<SubmitThread> submit;
};

class SubmittedUpdateTest : public testing::TestWithParam<std::string> {};

// Not on Metal: there the host runs the update step, and one thread submits.
MR_ON_EACH_REAL_BACKEND(SubmittedUpdateTest);

TEST_P(SubmittedUpdateTest, ReturnsTheReceiptOfATickWhoseCarriersAreThere) {
  Rig rig(test_backend_api(GetParam()));
  for (uint64_t number = 0; number < 20; ++number) {
    const int before = counter_of(rig.parts.update->state().counter[kTicksLived], 0);
    const Receipt receipt = rig.tick(number);
    EXPECT_EQ(receipt.operation, Operation::kUpdate);
    EXPECT_EQ(receipt.sequence, number + 1);
    EXPECT_EQ(counter_of(rig.parts.update->state().counter[kTicksLived], 0), before + 1);
  }
  rig.replay.wait_settled();
  EXPECT_EQ(rig.replay.counters().committed, 20u * kEnvs);
}

// The host has written behind the device's back; only what it says it changed is uploaded.
TEST_P(SubmittedUpdateTest, TakesOverCarriersThatTheHostSaysItHasChanged) {
  Rig rig(test_backend_api(GetParam()));
  rig.tick(0);
  counter_of(rig.parts.update->state().counter[kTicksLived], 1) = 400;
  rig.update->carriers_changed();
  rig.tick(1);
  EXPECT_EQ(counter_of(rig.parts.update->state().counter[kTicksLived], 1), 401);
}

TEST_P(SubmittedUpdateTest, AcceptsOnlyTheReceiptOfAStep) {
  Rig rig(test_backend_api(GetParam()));
  const Receipt reset = {Operation::kReset, 1, 0};
  EXPECT_THROW(rig.update->run(reset, {}, nullptr, 0), Failure);
}

TEST(SubmittedUpdate, AFaultOnTheSubmitThreadWakesTheCollectorAndIsTheFirstError) {
  Fault::inject("update", 2);
  Rig rig(faulty_backend(remote_backend()));
  rig.tick(0);
  rig.tick(1);
  EXPECT_THROW(rig.tick(2), Failure);
  Fault::clear();
  const std::optional<Error> error = rig.first_error.get();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->operation, "update.submit");
  EXPECT_EQ(error->thread, "submit");
  EXPECT_NE(error->message.find(Fault::kMeaning), std::string::npos);
}

TEST(SubmittedUpdate, ClosingTheReplayWakesACollectorThatWaits) {
  Rig rig(remote_backend());
  rig.replay.close();
  rig.submit.reset();
  const Receipt step = rig.parts.physics->step(rig.parts.update->actions(), 0);
  EXPECT_THROW(rig.update->run(step, {}, nullptr, 0), Failure);
}

TEST(SubmittedUpdate, SaysInTheManifestWhatATickCopies) {
  Rig rig(remote_backend(), GraphPolicy::kOff);
  rig.tick(0);
  const nlohmann::json facts = rig.update->facts();
  EXPECT_EQ(facts.at("place"), "device");
  EXPECT_EQ(facts.at("state"), "DISABLED");
  EXPECT_EQ(facts.at("eager_runs"), 1);
  EXPECT_GT(facts.at("copied_bytes_per_tick").at("with_reset"),
            facts.at("copied_bytes_per_tick").at("without_reset"));
}

}  // namespace
}  // namespace millrace

// Tests for cpp/collector.cpp, on a physics of random numbers that a test can make fail or wait.
#include "collector.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <stdexcept>

#include "run_fixture.h"
#include "task_fixture.h"

namespace millrace {
namespace {

constexpr int kEnvs = 4;
constexpr uint64_t kSeed = 3;

// Calls `before_step` first; it may throw or block.
class HookedSim final : public SimBackend {
 public:
  HookedSim() : sim_(cartpole_model(), false, kEnvs, kSeed) {}

  SimCapabilities capabilities() const override { return sim_.capabilities(); }
  const SimModel& model() const override { return sim_.model(); }
  const FieldView* state_view() const override { return sim_.state_view(); }
  HostRange state_memory() const override { return sim_.state_memory(); }
  Receipt step(const float* actions, uint64_t tick) override {
    if (before_step) before_step(tick);
    return sim_.step(actions, tick);
  }
  void reset(const uint8_t* mask, const double* qpos, const double* qvel,
             const double* gains) override {
    sim_.reset(mask, qpos, qvel, gains);
  }
  void apply_velocity_change(const uint8_t*, const float*) override {}
  uint64_t unstable_count() const override { return 0; }
  void register_state(StateRegistry&) override {}
  void state_restored() override {}

  std::function<void(uint64_t tick)> before_step;

 private:
  RandomSim sim_;
};

// Everything a collector works on. The test's thread is learner and submit thread.
struct Rig {
  explicit Rig(int depth, bool has_reader = false)
      : task(make_task(cartpole_config(), cartpole_model())),
        update(task, sim.state_view(), kEnvs, kSeed),
        policy({task.layout.observation_dim, task.layout.action_dim, 8, false}, kEnvs, kSeed),
        replay(backend,
               {task.layout, kEnvs, 64, depth, 8, kSeed, kEnvs, Pipeline::kDeviceResident,
                Place::kHost, BatchLayout::kRow, has_reader},
               error) {
    update.start_episodes(sim, true);
    collector = std::make_unique<Collector>(
        CollectorParts{sim, update, pool, policy, replay, error, nullptr, kEnvs});
  }
  ~Rig() {
    replay.close();
    collector->stop();
  }

  // Ticks below `tick`, one by one, each committed.
  void run_until(uint64_t tick) {
    for (uint64_t next = replay.counters().published / kEnvs; next < tick; ++next) {
      collector->release(next + 1);
      collector->wait_finished(next + 1);
      replay.progress(true);
    }
  }

  // Returns once the collector waits for a slot.
  void wait_for_backpressure() {
    while (replay.counters().backpressure_waits == 0) std::this_thread::yield();
  }

  Watchdog watchdog{20};
  FirstError error;
  HookedSim sim;
  Task task;
  UpdateStep update;
  WorkerPool pool{2};
  Backend backend{backend_cpu()};
  HostPolicy policy;
  Replay replay;
  std::unique_ptr<Collector> collector;
};

std::vector<float> weights(const Rig& rig, uint64_t seed) {
  std::vector<float> parameters(rig.policy.parameter_count());
  const RandomSource source = random_source(seed, kStreamReset, 0, 0);
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] = 0.5f * random_normal(source, static_cast<u32>(i));
  }
  return parameters;
}

std::string failure_of(const std::function<void()>& call, Code code) {
  try {
    call();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), code) << failure.what();
    return failure.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Collector, RunsWhatIsReleasedAndNoMore) {
  Rig rig(4);
  std::vector<uint64_t> ticks;
  rig.sim.before_step = [&](uint64_t tick) { ticks.push_back(tick); };
  rig.collector->start(10);
  rig.collector->release(13);
  rig.collector->wait_finished(13);
  rig.collector->release(12);  // is behind: changes nothing
  EXPECT_EQ(rig.collector->pause(), 13u);
  EXPECT_EQ(ticks, (std::vector<uint64_t>{10, 11, 12}));
  EXPECT_EQ(rig.replay.counters().published, 3u * kEnvs);
  EXPECT_THROW(rig.collector->start(13), Failure);
  rig.collector->release(14);  // goes on after a rest
  rig.collector->wait_finished(14);
  EXPECT_EQ(ticks.back(), 13u);
}

TEST(Collector, ActsWithTheSnapshotPublishedBeforeTheRelease) {
  Rig rig(1, true);
  rig.collector->start(0);
  const RowLayout& layout = rig.task.layout;
  Policy reference({layout.observation_dim, layout.action_dim, 8, false}, kEnvs);
  std::vector<float> rows(static_cast<size_t>(kEnvs * layout.width()));
  for (uint64_t tick = 0; tick < 6; ++tick) {
    const std::vector<float> parameters = weights(rig, tick / 2);  // every second tick a new one
    if (tick % 2 == 0) rig.policy.publish(parameters.data());
    rig.run_until(tick + 1);
    const float* committed = rig.replay.next_committed();
    std::copy(committed, committed + rows.size(), rows.begin());
    rig.replay.finish_read();
    std::vector<float> observations, actions(kEnvs);
    for (int env = 0; env < kEnvs; ++env) {
      const float* row = rows.data() + env * layout.width();
      observations.insert(observations.end(), row, row + layout.observation_dim);
    }
    reference.load(parameters.data());
    reference.act_exploring(observations.data(), kEnvs, kSeed, tick, actions.data());
    for (int env = 0; env < kEnvs; ++env) {
      EXPECT_EQ(rows[static_cast<size_t>(env * layout.width() + layout.action())],
                actions[static_cast<size_t>(env)])
          << tick << " " << env;
    }
  }
}

TEST(Collector, ItsFirstErrorReachesTheWaiterAndNamesWhereItWas) {
  for (const bool is_failure : {true, false}) {
    Rig rig(2);
    rig.sim.before_step = [&](uint64_t tick) {
      if (tick != 3) return;
      if (is_failure) throw Failure(Code::kDevice, "the robot fell off the table");
      throw std::runtime_error("the robot fell off the table");
    };
    rig.collector->start(0);
    const auto start = std::chrono::steady_clock::now();
    const Code code = is_failure ? Code::kDevice : Code::kBug;
    EXPECT_EQ(failure_of([&] { rig.run_until(10); }, code),
              "the robot fell off the table (in collector.tick 3 on thread collector)");
    EXPECT_LT(seconds_since(start), 2.0);
    // It stays the first one, whoever waits and whatever comes later.
    EXPECT_EQ(rig.error.later_count(), 0u);
    EXPECT_FALSE(rig.error.set({"learner.tick", 3, "learner", Code::kBug, "a later one"}));
    EXPECT_EQ(rig.error.later_count(), 1u);
    const std::string again = failure_of([&] { rig.collector->pause(); }, code);
    EXPECT_NE(again.find("collector.tick 3"), std::string::npos) << again;
    const ReplayCounters counters = rig.replay.counters();
    EXPECT_EQ(counters.published, 3u * kEnvs);
    EXPECT_EQ(counters.in_flight_at_close, 1u);  // the claimed slot of tick 3
    EXPECT_EQ(rig.replay.claim(), nullptr);
  }
}

TEST(Collector, ItsErrorWakesALearnerThatWaitsForRows) {
  Rig rig(2);
  rig.sim.before_step = [](uint64_t tick) {
    if (tick == 1) throw Failure(Code::kDevice, "no rows from me");
  };
  rig.collector->start(0);
  rig.run_until(1);
  ASSERT_TRUE(rig.replay.request(2));  // rows that tick 1 would make
  rig.collector->release(2);
  const auto start = std::chrono::steady_clock::now();
  const std::string message = failure_of([&] { rig.replay.progress(true); }, Code::kDevice);
  EXPECT_LT(seconds_since(start), 2.0);
  EXPECT_NE(message.find("no rows from me (in collector.tick 1 "), std::string::npos) << message;
  EXPECT_THROW(rig.replay.wait_ready(2), Failure);
}

TEST(Collector, AnErrorOfTheLearnerEndsACollectorThatWaitsForASlot) {
  Rig rig(1);
  rig.collector->start(0);
  rig.collector->release(2);
  rig.wait_for_backpressure();
  rig.error.set({"learner.tick", 0, "learner", Code::kBug, "the first one"});
  rig.replay.close();
  rig.collector->stop();
  EXPECT_EQ(rig.error.get()->message, "the first one");
  EXPECT_EQ(rig.error.later_count(), 1u);  // the collector's tick could not end
}

// Depth 1, four ticks released: the second waits for the slot of the first.
TEST(Collector, RestsWithoutADeadlockWhileItWaitsForASlot) {
  Rig rig(1);
  rig.collector->start(0);
  rig.collector->release(4);
  rig.wait_for_backpressure();
  rig.collector->recall();
  rig.replay.progress(true);
  EXPECT_EQ(rig.collector->pause(), 2u);
  EXPECT_EQ(rig.replay.counters().published, 2u * kEnvs);
}

TEST(Collector, RecallsWhatHasNotBegun) {
  Rig rig(4);
  rig.collector->start(0);
  rig.sim.before_step = [&](uint64_t tick) {
    if (tick == 0) rig.collector->recall();  // while tick 0 runs
  };
  rig.collector->release(3);
  rig.collector->wait_finished(1);
  EXPECT_EQ(rig.collector->pause(), 1u);
  EXPECT_EQ(rig.replay.counters().published, 1u * kEnvs);
}

TEST(Collector, StopsInAndBetweenTicks) {
  Rig rig(2);
  rig.collector->stop();  // never started
  rig.collector->start(0);
  rig.run_until(2);
  rig.collector->stop();
  rig.collector->stop();
  EXPECT_FALSE(rig.error.failed());
}

TEST(Collector, HandsOverItsTimesOnce) {
  Rig rig(2);
  rig.collector->start(0);
  rig.run_until(5);
  const PhaseTimes times = rig.collector->take_times();
  for (uint64_t ns : {times.act_ns, times.physics_ns, times.update_ns, times.publish_ns,
                      times.reset_ns, times.idle_ns}) {
    EXPECT_GT(ns, 0u);
  }
  EXPECT_EQ(times.learn_ns, 0u);
  EXPECT_EQ(rig.collector->take_times().physics_ns, 0u);
}

}  // namespace
}  // namespace millrace

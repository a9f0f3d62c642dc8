// Tests for cpp/replay.cpp: the protocol between collector, ring and learner.
#include "replay.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <vector>

#include "delayed_backend.h"
#include "each_backend.h"
#include "tagged_rows.h"

namespace millrace {
namespace {

constexpr uint64_t kSamples = 24;
constexpr auto kLongEnough = std::chrono::milliseconds(30);

// What a checkpoint holds, copied as the run would.
std::vector<std::vector<char>> saved_state(Replay& replay) {
  StateRegistry registry;
  replay.register_state(registry);
  std::vector<std::vector<char>> all;
  for (const StateTensor& tensor : registry.tensors()) {
    EXPECT_TRUE(tensor.is_replay);
    all.emplace_back(tensor.bytes());
    tensor.read(0, all.back().data(), tensor.bytes());
  }
  return all;
}

void load_state(const std::vector<std::vector<char>>& state, Replay& replay) {
  StateRegistry registry;
  replay.register_state(registry);
  for (size_t i = 0; i < state.size(); ++i) {
    ASSERT_EQ(state[i].size(), registry.tensors()[i].bytes());
    registry.tensors()[i].write(0, state[i].data(), state[i].size());
  }
  replay.restored(true);
}

struct Rig {
  explicit Rig(const BackendApi& api = backend_cpu(), int depth = 2, uint64_t num_envs = 4,
               uint64_t capacity = 14, uint64_t threshold = 8)
      : backend(api),
        replay(backend, {kPaddedLayout, num_envs, capacity, depth, kSamples, 11, threshold},
               first_error),
        transfer(backend),
        num_envs(num_envs) {}

  void publish() {
    write_tagged_rows(replay.counters().published, num_envs, kPaddedLayout, replay.claim());
    replay.publish();
  }
  // A whole synchronous tick; the batch's rows, or nothing below the threshold.
  std::vector<uint64_t> tick(uint64_t number) {
    const bool has_batch = replay.request(number);
    publish();
    replay.progress(true);
    return has_batch ? take(number) : std::vector<uint64_t>{};
  }
  std::vector<uint64_t> take(uint64_t number) {
    const uint64_t stride = static_cast<uint64_t>(replay.batch_stride());
    const std::vector<float> batch = transfer.read(replay.take(number), kSamples * stride);
    std::vector<uint64_t> rows;
    for (uint64_t i = 0; i < kSamples; ++i) {
      rows.push_back(read_tagged(&batch[i * stride], kPaddedLayout));
    }
    return rows;
  }

  Backend backend;
  FirstError first_error;
  Replay replay;
  Transfer transfer;
  uint64_t num_envs;
};

// What does not need a device that a test steps holds on every one that is here.
class ReplayProtocol : public testing::TestWithParam<std::string> {
 protected:
  const BackendApi& api() const { return test_backend_api(GetParam()); }
};

MR_ON_EACH_BACKEND(ReplayProtocol);

TEST(Replay, HostBytesDoNotGrowWithTheCapacity) {
  Rig small(backend_cpu(), 2, 4, 14), large(backend_cpu(), 2, 4, 1000);
  EXPECT_EQ(small.replay.host_bytes(), 2u * 4 * 52);
  EXPECT_EQ(large.replay.host_bytes(), small.replay.host_bytes());
  EXPECT_EQ(large.replay.device_bytes(), (1000 + 2 * kSamples) * 64);
}

TEST(Replay, RefusesACapacityBelowWhatIsInFlight) {
  EXPECT_THROW(Rig(backend_cpu(), 2, 4, 11), Failure);
  EXPECT_NO_THROW(Rig(backend_cpu(), 2, 4, 12));
}

TEST_P(ReplayProtocol, NoBatchBelowTheThreshold) {
  Rig rig(api());
  EXPECT_FALSE(rig.replay.request(0));  // would hold 4 of 8 rows
  rig.publish();
  rig.replay.progress(true);
  EXPECT_EQ(rig.replay.counters().committed, 4u);
  EXPECT_TRUE(rig.replay.request(1));
  EXPECT_TRUE(rig.replay.request(1));  // idempotent
  EXPECT_THROW(rig.replay.request(2), Failure);
}

// The batch of tick t+1 holds the rows that the action released for tick t makes.
TEST_P(ReplayProtocol, TheRangeIncludesTheRowsInTheMaking) {
  Rig rig(api());
  std::vector<bool> seen(4, false);
  for (uint64_t tick = 0; tick < 40; ++tick) {
    const uint64_t published = rig.replay.counters().published;
    for (uint64_t row : rig.tick(tick)) {
      ASSERT_LT(row, published + 4);
      ASSERT_GE(row + 14, published + 4);
      if (row >= published) seen[row - published] = true;
    }
    if (tick > 0) {
      EXPECT_EQ(rig.replay.taken().high, published + 4);
    }
  }
  EXPECT_EQ(seen, std::vector<bool>(4, true));
}

TEST(Replay, ABatchRequestedEarlyIsNotReadyBeforeItsRows) {
  Rig rig;
  rig.tick(0);
  ASSERT_TRUE(rig.replay.request(1));
  rig.replay.progress(false);
  EXPECT_FALSE(rig.replay.ready(1));
  EXPECT_THROW(rig.replay.take(1), Failure);
  rig.publish();
  rig.replay.progress(false);
  EXPECT_TRUE(rig.replay.ready(1));
}

// A collector that runs ahead cannot overwrite the rows of a batch that was promised.
TEST(Replay, LaterRowsWaitUntilThePromisedBatchIsGathered) {
  Rig rig(delayed_backend(), 2, 4, 12);
  for (uint64_t tick = 0; tick < 3; ++tick) rig.tick(tick);
  ASSERT_TRUE(rig.replay.request(3));  // rows 4..15
  rig.publish();
  rig.publish();  // 16..19 would lie over 4..7
  rig.replay.progress(false);
  EXPECT_EQ(rig.replay.counters().submitted, 16u);
  rig.replay.progress(true);
  EXPECT_EQ(rig.replay.counters().committed, 20u);
  for (uint64_t row : rig.take(3)) {
    EXPECT_GE(row, 4u);
    EXPECT_LT(row, 16u);
  }
}

TEST_P(ReplayProtocol, TheBoundaryWaitsForThePublishedRowsOfTheCollector) {
  Rig rig(api());
  rig.tick(0);
  ASSERT_TRUE(rig.replay.request(1));
  std::promise<void> release;
  std::thread collector([&] {
    release.get_future().wait();
    std::this_thread::sleep_for(kLongEnough);
    rig.publish();
  });
  release.set_value();
  rig.replay.progress(true);
  EXPECT_TRUE(rig.replay.ready(1));
  collector.join();
}

TEST(Replay, DepthOneHoldsTheCollectorBackAndTheDeviceKeepsTickT) {
  Rig rig(delayed_backend(), 1, 4, 12);
  rig.publish();
  rig.replay.progress(false);  // submitted, held
  auto next = std::async(std::launch::async, [&] { rig.publish(); });
  EXPECT_EQ(next.wait_for(kLongEnough), std::future_status::timeout);
  while (DelayedDevice::of(rig.backend).step()) {
  }
  rig.replay.progress(false);
  next.get();
  const std::vector<char> ring = saved_state(rig.replay).front();
  const float* rows = reinterpret_cast<const float*>(ring.data());
  for (uint64_t row = 0; row < 4; ++row) {
    EXPECT_EQ(read_tagged(rows + row * 16, kPaddedLayout), row);
  }
  EXPECT_EQ(rig.replay.counters().backpressure_waits, 1u);
}

TEST_P(ReplayProtocol, TheFirstErrorIsTheCauseOfEveryLaterWait) {
  Rig rig(api());
  rig.tick(0);
  rig.replay.request(1);
  std::thread collector([&] {
    std::this_thread::sleep_for(kLongEnough);
    rig.first_error.set({"collector.step", 3, "collector", Code::kDevice, "robot on fire"});
    rig.replay.close();
  });
  try {
    rig.replay.progress(true);  // would wait for rows for ever
    ADD_FAILURE();
  } catch (const Failure& failure) {
    EXPECT_EQ(std::string(failure.what()).rfind("robot on fire", 0), 0u) << failure.what();
  }
  collector.join();
  EXPECT_THROW(rig.replay.take(1), Failure);
  EXPECT_THROW(rig.replay.request(2), Failure);
  EXPECT_EQ(rig.replay.claim(), nullptr);
}

TEST(Replay, CloseReportsWhatWasInFlight) {
  Rig rig(delayed_backend());
  rig.publish();
  rig.replay.progress(false);
  rig.publish();
  rig.replay.close();
  EXPECT_EQ(rig.replay.counters().in_flight_at_close, 2u);
}

// A time-limit row at the last place of the ring keeps its own final observation (4), not the first
// one of the next episode (100) that lies next to it.
TEST_P(ReplayProtocol, ATruncatedRowKeepsItsFinalObservation) {
  constexpr RowLayout kLayout{1, 1, 1};
  for (uint64_t offset = 0; offset < 4; ++offset) {  // the truncated row at every place, CAP-1 too
    Backend backend(api());
    FirstError first_error;
    Replay replay(backend, {kLayout, 1, 4, 1, 64, 3, 1}, first_error);
    Transfer transfer(backend);
    const auto add = [&](float obs, float next, float truncated) {
      float* row = replay.claim();
      const float values[] = {obs, next, obs, 1000 + obs, truncated, truncated, obs, next};
      std::copy(values, values + 8, row);
      replay.publish();
      replay.progress(true);
    };
    for (uint64_t i = 0; i < offset; ++i) add(50, 51, 0);
    add(1, 2, 0);
    add(2, 3, 0);
    add(3, 4, 1);
    add(100, 101, 0);
    ASSERT_TRUE(replay.request_newest(9));
    replay.progress(true);
    const uint64_t stride = static_cast<uint64_t>(replay.batch_stride());
    const std::vector<float> batch = transfer.read(replay.take(9), 64 * stride);
    int truncated_count = 0;
    for (uint64_t i = 0; i < 64; ++i) {
      const float* row = &batch[i * stride];
      EXPECT_EQ(row[kLayout.next_observation()], row[kLayout.observation()] + 1);
      EXPECT_EQ(row[kLayout.reward()] - 1000, row[kLayout.observation()]);
      EXPECT_EQ(row[kLayout.action()], row[kLayout.observation()]);
      truncated_count += row[kLayout.truncated()] == 1;
    }
    EXPECT_GT(truncated_count, 0);
  }
}

TEST(Replay, AResumedRunGathersTheSameBatches) {
  Rig whole;
  for (uint64_t tick = 0; tick < 9; ++tick) whole.tick(tick);
  // The boundary of a tick: the next batch is requested, gathered and not yet taken.
  ASSERT_TRUE(whole.replay.request(9));
  whole.publish();
  whole.replay.progress(true);
  const auto state = saved_state(whole.replay);
  Rig resumed;
  load_state(state, resumed.replay);
  resumed.replay.progress(true);
  EXPECT_EQ(resumed.replay.counters().published, 40u);
  EXPECT_EQ(resumed.take(9), whole.take(9));
  for (uint64_t tick = 10; tick < 20; ++tick) {
    EXPECT_EQ(resumed.tick(tick), whole.tick(tick)) << tick;
  }
}

TEST(Replay, ResumeWithoutReplayStartsEmptyAndWarmsUpAgain) {
  Rig rig;
  for (uint64_t tick = 0; tick < 5; ++tick) rig.tick(tick);
  rig.replay.restored(false);
  EXPECT_EQ(rig.replay.counters().committed, 0u);
  EXPECT_FALSE(rig.replay.request(5));
}

TEST(Replay, AResumedNewestRequestSkipsRowsOverwrittenSince) {
  Rig rig;
  for (uint64_t tick = 0; tick < 4; ++tick) rig.tick(tick);
  ASSERT_TRUE(rig.replay.request_newest(4));  // gathered over 2..15
  rig.replay.progress(true);
  rig.publish();
  rig.replay.progress(true);
  const auto state = saved_state(rig.replay);
  Rig resumed;
  load_state(state, resumed.replay);
  resumed.replay.progress(true);
  resumed.take(4);
  EXPECT_EQ(resumed.replay.taken().low, 6u);
  EXPECT_EQ(resumed.replay.taken().high, 16u);
}

}  // namespace
}  // namespace millrace

// Protocol simulation of cpp/replay.cpp: 20,000 seeded schedules in which collector, submit calls
// and the device take turns at random on one thread. Every sampled row must be whole, committed
// when it was gathered and inside its range, and the counters must keep their order.
#include <gtest/gtest.h>

#include <optional>

#include "delayed_backend.h"
#include "philox.h"
#include "replay.h"
#include "tagged_rows.h"

namespace millrace {
namespace {

constexpr uint64_t kSeeds = 20000;
constexpr int kTurns = 300;
constexpr uint64_t kSamples = 6;

class Schedule {
 public:
  explicit Schedule(uint64_t seed)
      : random_(random_source(seed, kStreamEvent, 0, 0)),
        is_sync_(draw(2) == 0),
        depth_(1 + static_cast<int>(draw(4))),
        num_envs_(1 + draw(4)),
        capacity_((static_cast<uint64_t>(depth_) + 1) * num_envs_ + draw(5)),
        backend_(delayed_backend()),
        replay_(backend_, {kTaggedLayout, num_envs_, capacity_, depth_, kSamples, seed, 1},
                first_error_) {}

  // Returns how many batches were taken.
  uint64_t run() {
    for (int turn = 0; turn < kTurns && !testing::Test::HasFailure(); ++turn) {
      const uint64_t what = draw(10);
      if (what < 2) {
        collect();
      } else if (what < 6) {
        DelayedDevice::of(backend_).step_or_reveal(draw(1 << 16));
      } else if (what < 8) {
        replay_.progress(false);
      } else {
        learn();
      }
      check_counters();
    }
    finish();
    return batches_;
  }

 private:
  uint64_t draw(u32 n) { return random_index(random_, draws_++, n); }

  // In the synchronous schedule the collector needs an action for every tick.
  void collect() {
    const ReplayCounters counters = replay_.counters();
    const bool has_slot =
        counters.published - counters.committed < static_cast<uint64_t>(depth_) * num_envs_;
    if (!has_slot || (is_sync_ && actions_ == 0)) return;
    write_tagged_rows(counters.published, num_envs_, kTaggedLayout, replay_.claim());
    replay_.publish();
    if (is_sync_) --actions_;
  }

  void learn() {
    if (!requested_) {
      const uint64_t tick = tick_++;
      if (is_sync_) {
        expected_high_ = replay_.counters().published + num_envs_;
        if (replay_.request(tick)) requested_ = tick;
        actions_ += 1 + (draw(4) == 0);  // one too many now and then: it must be held back
      } else if (replay_.request_newest(tick)) {
        requested_ = tick;
      }
      return;
    }
    if (replay_.ready(*requested_)) take();
  }

  void take() {
    const float* batch = replay_.take(*requested_);
    const SampleRange range = replay_.taken();
    ASSERT_EQ(range.tick, *requested_);
    if (is_sync_) {
      ASSERT_EQ(range.high, expected_high_);
      ASSERT_EQ(range.low, range.high > capacity_ ? range.high - capacity_ : 0);
    }
    ASSERT_LE(range.high, replay_.counters().committed);
    for (uint64_t i = 0; i < kSamples; ++i) {
      const uint64_t row =
          read_tagged(batch + i * static_cast<uint64_t>(replay_.batch_stride()), kTaggedLayout);
      ASSERT_TRUE(row >= range.low && row < range.high)
          << "row " << row << " outside " << range.low << ".." << range.high;
    }
    requested_.reset();
    ++batches_;
  }

  void check_counters() {
    const ReplayCounters counters = replay_.counters();
    ASSERT_GE(counters.published, counters.submitted);
    ASSERT_GE(counters.submitted, counters.committed);
    ASSERT_GE(counters.committed, last_committed_);
    last_committed_ = counters.committed;
  }

  // No schedule ends in a deadlock: once the promised rows are there, the boundary is reached.
  void finish() {
    if (is_sync_ && requested_ && replay_.counters().published < expected_high_) {
      replay_.progress(false);  // submits what is published, so that the collector gets a slot
      while (DelayedDevice::of(backend_).step()) {
      }
      replay_.progress(false);
      actions_ = 1;
      collect();
    }
    replay_.progress(true);
    if (requested_) take();
    ASSERT_EQ(replay_.counters().committed, replay_.counters().published);
    replay_.close();
    ASSERT_EQ(replay_.counters().in_flight_at_close, 0u);
  }

  RandomSource random_;
  u32 draws_ = 0;
  bool is_sync_;
  int depth_;
  uint64_t num_envs_;
  uint64_t capacity_;
  Backend backend_;
  FirstError first_error_;
  Replay replay_;
  uint64_t tick_ = 0;
  uint64_t batches_ = 0;
  std::optional<uint64_t> requested_;
  uint64_t expected_high_ = 0;
  uint64_t last_committed_ = 0;
  uint64_t actions_ = 0;  // released and not yet used
};

TEST(ReplaySchedule, EveryOrderOfEventsKeepsTheContract) {
  uint64_t batches = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    batches += Schedule(seed).run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(batches, 8 * kSeeds);  // the rings went round
}

}  // namespace
}  // namespace millrace

// Stress of cpp/replay.cpp with real threads, meant to run under the thread sanitizer: one writer,
// one committer (the submit thread) and one sampler move 10^6 rows through depths 1 to 8,
// capacities that are no multiple of the chunk, with ranges fixed before the rows exist (sync) and
// at the gather (async). Every sampled row must be whole, committed, inside its range and hold its
// own terminal observation.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "each_backend.h"
#include "replay.h"
#include "tagged_rows.h"

namespace millrace {
namespace {

constexpr uint64_t kRowsInAll = 1000000;
constexpr uint64_t kWraps = 100;  // of every case, at least
constexpr int kDepths = 8;
constexpr uint64_t kCases = 2 * kDepths;
// Its kernels run on the CPU: as many rows would take minutes.
constexpr uint64_t kShareOfFakeMetal = 20;
constexpr uint64_t kSamples = 24;

class Stress {
 public:
  // 1 / share of the rows.
  Stress(const BackendApi& api, bool is_sync, int depth, uint64_t share)
      : is_sync_(is_sync),
        chunk_(static_cast<uint64_t>(7 + 3 * depth)),
        ticks_(kRowsInAll / kCases / share / chunk_ + 1),
        least_wraps_(kWraps / share),
        capacity_((static_cast<uint64_t>(depth) + 1) * chunk_ + static_cast<uint64_t>(depth) % 5 +
                  1),
        backend_(api),
        replay_(backend_, {kPaddedLayout, chunk_, capacity_, depth, kSamples, 17, 1}, first_error_),
        transfer_(backend_) {}

  void run() {
    std::thread writer([this] { guard("writer", [this] { write(); }); });
    std::thread committer([this] {
      guard("committer", [this] {
        while (!is_driven_by_sampler() && !replay_.is_closed()) {
          const uint64_t seen = replay_.doorbell().count();
          if (!replay_.work() && !replay_.is_closed()) replay_.doorbell().wait(seen);
        }
      });
    });
    std::thread sampler([this] { guard("sampler", [this] { sample(); }); });
    writer.join();
    sampler.join();
    committer.join();
    if (first_error_.failed()) ADD_FAILURE() << first_error_.get()->message;
    EXPECT_EQ(bad_rows_, 0u);
    const ReplayCounters counters = replay_.counters();
    EXPECT_EQ(counters.committed, ticks_ * chunk_);
    EXPECT_EQ(counters.published, counters.committed);
    EXPECT_EQ(counters.in_flight_at_close, 0u);
    EXPECT_GE(counters.wraps, least_wraps_);
    if (is_sync_) {
      EXPECT_EQ(batches_, ticks_);
    } else {
      // Of one thread's turns between the writer's; how many those are, the machine decides.
      EXPECT_GE(batches_, is_driven_by_sampler() ? 1u : 10u);
    }
  }

  uint64_t rows() const { return ticks_ * chunk_; }

 private:
  // Where one thread submits everything, the one that reads the batches is it.
  bool is_driven_by_sampler() const { return backend_.has_one_submit_thread(); }

  template <class Body>
  void guard(const char* thread, Body body) {
    try {
      body();
    } catch (const std::exception& failure) {
      first_error_.set({"stress", 0, thread, Code::kBug, failure.what()});
      replay_.close();
      actions_.ring();
    }
  }

  void write() {
    for (uint64_t tick = 0; tick < ticks_; ++tick) {
      if (is_sync_) actions_.wait(tick);  // until action number tick + 1 is released
      float* slot = replay_.claim();
      if (slot == nullptr) return;
      write_tagged_rows(tick * chunk_, chunk_, kPaddedLayout, slot);
      replay_.publish();
    }
  }

  void sample() {
    for (uint64_t tick = 0; replay_.taken().high < ticks_ * chunk_; ++tick) {
      if (is_driven_by_sampler()) replay_.progress(false);
      if (is_sync_) {
        MR_CHECK(replay_.request(tick), "the threshold is one row");
        actions_.ring();
      } else if (!replay_.request_newest(tick)) {
        std::this_thread::yield();  // nothing is committed yet
        continue;
      }
      if (is_driven_by_sampler()) {
        replay_.progress(true);
      } else if (!replay_.wait_ready(tick)) {
        return;
      }
      check(replay_.take(tick), tick);
      ++batches_;
    }
    replay_.close();
  }

  void check(const float* batch, uint64_t tick) {
    const SampleRange range = replay_.taken();
    MR_CHECK(range.tick == tick, "a batch of another tick");
    MR_CHECK(range.high <= replay_.counters().committed, "a batch of uncommitted rows");
    MR_CHECK(!is_sync_ || range.high == (tick + 1) * chunk_, "a batch without the newest rows");
    const uint64_t stride = static_cast<uint64_t>(replay_.batch_stride());
    const std::vector<float> values = transfer_.read(batch, kSamples * stride);
    for (uint64_t i = 0; i < kSamples; ++i) {
      const uint64_t row = read_tagged(&values[i * stride], kPaddedLayout);
      bad_rows_ += row < range.low || row >= range.high;
    }
  }

  const bool is_sync_;
  const uint64_t chunk_, ticks_, least_wraps_, capacity_;
  Backend backend_;
  FirstError first_error_;
  Replay replay_;
  Transfer transfer_;      // sampler thread
  Doorbell actions_;       // rung once for each released action
  uint64_t bad_rows_ = 0;  // sampler thread
  uint64_t batches_ = 0;   // sampler thread
};

class ReplayStress : public testing::TestWithParam<std::string> {};

MR_ON_EACH_BACKEND(ReplayStress);

TEST_P(ReplayStress, AMillionRowsThroughEveryDepthSyncAndAsync) {
  const uint64_t share = GetParam() == kFakeMetal ? kShareOfFakeMetal : 1;
  uint64_t rows = 0;
  for (int depth = 1; depth <= kDepths; ++depth) {
    for (bool is_sync : {true, false}) {
      SCOPED_TRACE((is_sync ? "sync depth " : "async depth ") + std::to_string(depth));
      Stress stress(test_backend_api(GetParam()), is_sync, depth, share);
      stress.run();
      rows += stress.rows();
    }
  }
  EXPECT_GE(rows, kRowsInAll / share);
}

}  // namespace
}  // namespace millrace

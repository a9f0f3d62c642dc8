// The one-tick prefetch on Metal, where the learner thread submits everything: add, copy, commit
// and gather of the next batch all fall inside the update window, and the call at the boundary
// submits nothing and waits for nothing. The clock is the fake device's journal; the device runs
// when the test says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "each_backend.h"
#include "fake_metal.h"
#include "replay.h"
#include "tagged_rows.h"

namespace millrace {
namespace {

constexpr uint64_t kEnvs = 4, kCapacity = 14, kSamples = 24, kThreshold = 8;
constexpr int kUpdates = 4;

using Journal = std::vector<std::string>;

// Stands for the learner: each update is one command buffer of its own stream.
class Learner {
 public:
  explicit Learner(Backend& backend)
      : stream_(backend),
        weights_(backend, Memory::Kind::kDevice, 64),
        gradients_(backend, Memory::Kind::kDevice, 64),
        done_(backend) {}

  void update() {
    stream_.copy(CopyDirection::kDeviceToDevice, weights_.floats(), gradients_.floats(), 64);
    stream_.record(done_);
  }

 private:
  Stream stream_;
  Memory weights_, gradients_;
  Event done_;
};

class MetalPrefetch : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_fake_metal()) GTEST_SKIP() << "the fake device was not built: tools/setup";
    backend_ = std::make_unique<Backend>(fake_metal());
    replay_ = std::make_unique<Replay>(
        *backend_, ReplaySpec{kPaddedLayout, kEnvs, kCapacity, 2, kSamples, 11, kThreshold},
        first_error_);
    learner_ = std::make_unique<Learner>(*backend_);
    transfer_ = std::make_unique<Transfer>(*backend_);
  }
  void TearDown() override {
    if (!has_fake_metal()) return;
    device().resume();
    device().take_journal();
  }

  static metal_shim::FakeMetal& device() { return fake_metal_device(); }
  // Everything that was committed runs, and nothing else.
  static void run_device() {
    const uint64_t committed = device().committed();
    device().run(committed - device().completed());
    while (device().completed() < committed) std::this_thread::yield();
  }
  void publish() {
    write_tagged_rows(replay_->counters().published, kEnvs, kPaddedLayout, replay_->claim());
    replay_->publish();
    device().note("add");
  }

  FirstError first_error_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Replay> replay_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<Transfer> transfer_;
};

size_t place_of(const Journal& journal, const std::string& text) {
  const auto found = std::find(journal.begin(), journal.end(), text);
  EXPECT_NE(found, journal.end()) << text;
  return static_cast<size_t>(found - journal.begin());
}

TEST_F(MetalPrefetch, TheBoundaryFindsItsBatchAndSubmitsNothing) {
  for (int i = 0; i < 3; ++i) {  // past the threshold
    publish();
    replay_->progress(true);
  }
  device().hold();
  for (uint64_t tick = 1; tick <= 5; ++tick) {
    device().begin_journal();
    ASSERT_TRUE(replay_->request(tick));
    device().note("window begins");
    for (int k = 0; k < kUpdates; ++k) {
      learner_->update();
      if (k == 0) publish();
      run_device();  // while the learner computes
      replay_->progress(false);
    }
    device().note("window ends");
    ASSERT_TRUE(replay_->ready(tick));
    device().note("boundary begins");
    const float* const batch = replay_->take(tick);
    device().note("boundary ends");
    const Journal journal = device().take_journal();

    const size_t window = place_of(journal, "window begins");
    const size_t copy = place_of(journal, "commit copy_rows_by_4");  // a slot's rows of 52 bytes
    const size_t gather = place_of(journal, "commit gather_rows_aligned");
    EXPECT_LT(window, place_of(journal, "add"));
    EXPECT_LT(place_of(journal, "add"), copy);
    EXPECT_LT(copy, gather);
    // Between them the copy was complete, so what was gathered had been committed.
    EXPECT_GT(std::count(journal.begin() + static_cast<std::ptrdiff_t>(copy),
                         journal.begin() + static_cast<std::ptrdiff_t>(gather), "complete"),
              0);
    EXPECT_LT(gather, place_of(journal, "window ends"));
    EXPECT_EQ(place_of(journal, "boundary ends"), place_of(journal, "boundary begins") + 1);

    device().resume();
    const uint64_t stride = static_cast<uint64_t>(replay_->batch_stride());
    const std::vector<float> rows = transfer_->read(batch, kSamples * stride);
    for (uint64_t i = 0; i < kSamples; ++i) {
      const uint64_t row = read_tagged(&rows[i * stride], kPaddedLayout);
      EXPECT_GE(row, replay_->taken().low);
      EXPECT_LT(row, replay_->taken().high);
    }
    EXPECT_EQ(replay_->taken().high, (tick + 3) * kEnvs);
    device().hold();
  }
}

}  // namespace
}  // namespace millrace

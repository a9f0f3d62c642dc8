// Tests for cpp/submit_thread.cpp: three threads round one replay.
#include "submit_thread.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "each_backend.h"
#include "remote_backend.h"
#include "run_fixture.h"
#include "tagged_rows.h"

namespace millrace {
namespace {

constexpr uint64_t kEnvs = 6, kCapacity = 40, kSamples = 30;

struct Rig {
  explicit Rig(const BackendApi& api)
      : backend(api),
        replay(backend,
               {kPaddedLayout, kEnvs, kCapacity, 2, kSamples, 3, 1, Pipeline::kDeviceResident,
                Place::kHost},
               first_error),
        submit(std::make_unique<SubmitThread>(replay, nullptr, first_error, nullptr)) {}
  ~Rig() {
    replay.close();
    submit.reset();
  }

  void publish() {
    write_tagged_rows(replay.counters().published, kEnvs, kPaddedLayout, replay.claim());
    replay.publish();
  }

  Watchdog watchdog{30};
  Backend backend;
  FirstError first_error;
  Replay replay;
  std::unique_ptr<SubmitThread> submit;
};

class SubmitThreadTest : public testing::TestWithParam<std::string> {};

MR_ON_EACH_BACKEND(SubmitThreadTest);

TEST_P(SubmitThreadTest, CommitsAndGathersWithoutACallOfTheLearner) {
  Rig rig(test_backend_api(GetParam()));
  for (uint64_t tick = 1; tick <= 50; ++tick) {
    rig.replay.request(tick);
    std::thread collector([&] { rig.publish(); });
    rig.replay.wait_ready(tick);
    const float* batch = rig.replay.take(tick);
    collector.join();
    const SampleRange range = rig.replay.taken();
    for (uint64_t i = 0; i < kSamples; ++i) {
      const uint64_t row =
          read_tagged(batch + i * static_cast<uint64_t>(rig.replay.batch_stride()), kPaddedLayout);
      ASSERT_TRUE(row >= range.low && row < range.high) << row;
    }
    rig.replay.wait_settled();
    EXPECT_EQ(rig.replay.counters().committed, tick * kEnvs);
  }
}

TEST(SubmitThread, ItsFirstErrorReachesTheLearnerAndTheCollector) {
  Fault::inject("copy_2d", 3);
  Rig rig(faulty_backend(remote_backend()));
  for (int i = 0; i < 3; ++i) {
    rig.publish();
    rig.replay.wait_settled();
  }
  rig.publish();
  EXPECT_THROW(rig.replay.wait_settled(), Failure);
  EXPECT_EQ(rig.replay.claim(), nullptr);
  const std::optional<Error> error = rig.first_error.get();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->operation, "replay.submit");
  EXPECT_EQ(error->thread, "submit");
  EXPECT_EQ(error->sequence, 3 * kEnvs);
  Fault::clear();
}

TEST(SubmitThread, EndsWhenTheReplayIsClosed) {
  Rig rig(remote_backend());
  rig.publish();
  rig.replay.wait_settled();
  rig.replay.close();
  rig.submit.reset();
  EXPECT_FALSE(rig.first_error.failed());
  rig.submit = std::make_unique<SubmitThread>(rig.replay, nullptr, rig.first_error,
                                              nullptr);  // ends at once
}

}  // namespace
}  // namespace millrace

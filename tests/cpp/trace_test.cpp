// Tests for cpp/trace.cpp.
#include "trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "temporary_folder.h"

namespace millrace {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class TraceTest : public testing::Test {
 protected:
  nlohmann::json events() const {
    std::ifstream file(path_);
    return nlohmann::json::parse(file)["traceEvents"];
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "trace.json";
  FirstError first_error_;
};

TEST_F(TraceTest, SpansCountersAndTrackNamesAreValidJson) {
  Trace trace(path_, kMiB, first_error_);
  trace.name_thread("learner");
  const uint64_t begin_ns = Trace::now_ns();
  trace.complete(span::kUpdateCritic, begin_ns, begin_ns + 2500);
  trace.counter("replay_size", 512);
  std::thread other([&] {
    trace.name_thread("collector");
    TraceSpan span(&trace, span::kEnvStep);
  });
  other.join();
  trace.close();
  const nlohmann::json all = events();
  ASSERT_EQ(all.size(), 6u);  // five and the count of what was dropped
  EXPECT_EQ(all[0]["args"]["name"], "learner");
  EXPECT_EQ(all[1]["ph"], "X");
  EXPECT_EQ(all[1]["name"], "learner/update_critic");
  EXPECT_EQ(all[1]["cat"], "learner");
  EXPECT_DOUBLE_EQ(all[1]["dur"].get<double>(), 2.5);
  EXPECT_EQ(all[2]["args"]["value"].get<double>(), 512);
  EXPECT_EQ(all[4]["name"], "collector/env_step");
  EXPECT_NE(all[4]["tid"], all[1]["tid"]);
  EXPECT_EQ(all[5]["args"]["records"], 0);
}

TEST_F(TraceTest, StopsAtItsCapWithTheRestCounted) {
  constexpr uint64_t kCap = 16 * 1024;
  Trace trace(path_, kCap, first_error_);
  for (int i = 0; i < 5000; ++i) trace.complete(span::kEnvStep, 0, 1);
  trace.close();
  EXPECT_LE(std::filesystem::file_size(path_), kCap);
  EXPECT_GT(trace.written(), 50u);
  EXPECT_EQ(trace.written() + trace.dropped(), 5000u);
  EXPECT_EQ(events().back()["args"]["records"], trace.dropped());
  EXPECT_FALSE(first_error_.failed());
}

TEST_F(TraceTest, RecordsFromManyThreadsAreAllThereOrCounted) {
  Trace trace(path_, 64 * kMiB, first_error_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) TraceSpan span(&trace, span::kReplayAdd);
    });
  }
  for (std::thread& thread : threads) thread.join();
  trace.close();
  EXPECT_EQ(trace.written() + trace.dropped(), 20000u);
  EXPECT_EQ(events().size(), trace.written() + 1);
}

TEST_F(TraceTest, OffCostsNothingAndRecordsNothing) {
  TraceSpan span(nullptr, span::kEnvStep);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST(Trace, AFileThatCannotBeMadeIsAResourceFailure) {
  FirstError first_error;
  EXPECT_THROW(Trace("/nonexistent/trace.json", kMiB, first_error), Failure);
}

TEST(Trace, AFullDiskIsTheRunsError) {
  FirstError first_error;
  Trace trace("/dev/full", kMiB, first_error);
  for (int i = 0; i < 200; ++i) trace.complete(span::kEnvStep, 0, 1);
  trace.close();
  ASSERT_TRUE(first_error.failed());
  EXPECT_EQ(first_error.get()->thread, "trace");
}

}  // namespace
}  // namespace millrace

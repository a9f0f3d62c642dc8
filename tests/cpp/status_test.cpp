// Tests for cpp/status.cpp.
#include "status.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace millrace {
namespace {

Error error_of(uint64_t sequence) {
  return {"collector.step", sequence, "collector", Code::kDevice, "lost the device"};
}

TEST(FirstError, KeepsTheFirstAndCountsTheOthers) {
  FirstError cell;
  EXPECT_FALSE(cell.failed());
  EXPECT_NO_THROW(cell.check());
  EXPECT_TRUE(cell.set(error_of(3)));
  EXPECT_FALSE(cell.set(error_of(4)));
  EXPECT_FALSE(cell.set(error_of(5)));
  EXPECT_EQ(cell.get()->sequence, 3u);
  EXPECT_EQ(cell.later_count(), 2u);
}

TEST(FirstError, CheckNamesMessageOperationSequenceAndThread) {
  FirstError cell;
  cell.set(error_of(7));
  try {
    cell.check();
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kDevice);
    EXPECT_STREQ(failure.what(), "lost the device (in collector.step 7 on thread collector)");
  }
}

TEST(FirstError, ExactlyOneOfManyThreadsWins) {
  FirstError cell;
  std::atomic<int> wins{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { wins += cell.set(error_of(i)) ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wins, 1);
  EXPECT_EQ(cell.later_count(), 7u);
}

TEST(Check, ThrowsABugWithFileAndMessage) {
  try {
    MR_CHECK(1 + 1 == 3, "arithmetic");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kBug);
    EXPECT_NE(std::string(failure.what()).find("status_test.cpp"), std::string::npos);
    EXPECT_NE(std::string(failure.what()).find("arithmetic"), std::string::npos);
  }
}

}  // namespace
}  // namespace millrace

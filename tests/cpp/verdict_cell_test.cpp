// Tests for cpp/verdict_cell.cpp.
#include "verdict_cell.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace millrace {
namespace {

TEST(VerdictCell, NothingIsVisibleBeforeTheBoundary) {
  VerdictCell cell;
  cell.report(verdict_of(kVerdictReward, 5, 3, 2));
  EXPECT_EQ(cell.first().kind, static_cast<u32>(kVerdictGood));
  EXPECT_EQ(cell.bad_count(), 0u);
  cell.complete(5);
  EXPECT_EQ(cell.first().environment, 3u);
  EXPECT_EQ(cell.first().tick, 5u);
  EXPECT_EQ(cell.bad_count(), 1u);
}

TEST(VerdictCell, AnyThreadOrderGivesTheSameFirst) {
  for (int trial = 0; trial < 20; ++trial) {
    VerdictCell cell;
    std::vector<std::thread> workers;
    for (u32 worker = 0; worker < 4; ++worker) {
      workers.emplace_back([&cell, worker] {
        for (u32 i = 0; i < 50; ++i) {
          cell.report(verdict_of(kVerdictReward, 7, 10 + i * 4 + (worker + i) % 4, 1));
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    cell.complete(7);
    EXPECT_EQ(cell.first().environment, 10u);
    EXPECT_EQ(cell.bad_count(), 200u);
  }
}

TEST(VerdictCell, ALaterTickDoesNotReplaceTheFirst) {
  VerdictCell cell;
  cell.report(verdict_of(kVerdictReward, 1, 8, 0));
  cell.complete(1);
  cell.report(verdict_of(kVerdictReward, 2, 0, 0));
  cell.complete(2);
  EXPECT_EQ(cell.first().environment, 8u);
  EXPECT_EQ(cell.bad_count(), 2u);
}

}  // namespace
}  // namespace millrace

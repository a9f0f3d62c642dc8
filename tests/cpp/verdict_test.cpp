// Tests for cpp/verdict.h and cpp/verdict_cell.cpp.
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "verdict_cell.h"

namespace millrace {
namespace {

TEST(Verdict, KeyKeepsEverythingButTheTick) {
  const Verdict verdict = verdict_of(kVerdictReward, 9, 4095, 17);
  const Verdict back = verdict_from_key(verdict_key(verdict), 9);
  EXPECT_EQ(back.kind, static_cast<u32>(kVerdictReward));
  EXPECT_EQ(back.environment, 4095u);
  EXPECT_EQ(back.term, 17u);
  EXPECT_EQ(back.tick, 9u);
  EXPECT_EQ(verdict_from_key(verdict_key_none(), 3).kind, static_cast<u32>(kVerdictGood));
}

TEST(Verdict, MergeTakesTheEarliestByTickThenEnvironment) {
  const Verdict good = verdict_of(kVerdictGood, 0, 0, 0);
  const Verdict early = verdict_of(kVerdictReward, 3, 9, 1);
  const Verdict late = verdict_of(kVerdictObservation, 4, 0, 0);
  const Verdict lower = verdict_of(kVerdictPhysics, 3, 2, 0);
  for (const auto& [a, b, expected] : std::vector<std::array<Verdict, 3>>{
           {good, early, early}, {early, late, early}, {early, lower, lower}}) {
    EXPECT_EQ(verdict_key(verdict_merge(a, b)), verdict_key(expected));
    EXPECT_EQ(verdict_key(verdict_merge(b, a)), verdict_key(expected));
  }
}

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

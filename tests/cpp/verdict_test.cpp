// Tests for cpp/verdict.h.
#include "verdict.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

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

}  // namespace
}  // namespace millrace

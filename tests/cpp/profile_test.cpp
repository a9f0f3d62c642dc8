// Tests for cpp/profile.cpp, with a clock that only work moves.
#include "profile.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

class ProfileTest : public testing::Test {
 protected:
  ProfiledWay way(const std::string& name, double us) {
    return {name,
            [this, name, us] {
              trace_ += name;
              now_ns_ += static_cast<uint64_t>(us * 1000);
            },
            [this] { trace_ += "|"; }};
  }
  Profile measure(const std::vector<ProfiledWay>& ways, const ProfileLimits& limits) {
    return profile(ways, limits, [this] { return now_ns_; });
  }

  uint64_t now_ns_ = 1;
  std::string trace_;
};

TEST_F(ProfileTest, InterleavesTheWaysAfterTheirWarmRuns) {
  const Profile found = measure({way("A", 500), way("B", 800)}, {3, 2000, 2});
  EXPECT_EQ(trace_, "A|A|B|B|A|B|A|B|A|B|");
  EXPECT_EQ(found.runs_of_a_sample, 1);
  ASSERT_EQ(found.times.size(), 2u);
  EXPECT_EQ(found.times[0].way, "A");
  EXPECT_EQ(found.times[0].median_us, 500);
  EXPECT_EQ(found.times[1].median_us, 800);
  EXPECT_EQ(found.times[1].rounds, 3u);
  EXPECT_NEAR(found.took_ms, 5 * 1.3, 1e-9);
}

TEST_F(ProfileTest, ShortRunsAreMeasuredManyAtATime) {
  const Profile found = measure({way("A", 100), way("B", 150)}, {1, 2000, 1});
  EXPECT_EQ(found.runs_of_a_sample, 4);  // so that 400 us pass
  EXPECT_EQ(trace_, "A|B|AAAA|BBBB|");
  EXPECT_EQ(found.times[0].median_us, 100);
  EXPECT_EQ(measure({way("C", 1)}, {1, 2000, 1}).runs_of_a_sample, 16);
}

TEST_F(ProfileTest, NoRoundBeginsThatWouldProbablyExceedTheBudget) {
  const Profile found = measure({way("A", 30000), way("B", 20000)}, {30, 1000, 4});
  EXPECT_LE(found.took_ms, 1000);
  EXPECT_EQ(found.times[0].rounds, 16u);  // (1000 - 4 * 50) / 50
  EXPECT_EQ(found.times[1].rounds, 16u);
}

TEST_F(ProfileTest, ARunLongerThanTheBudgetIsMadeOnceAndIsNotEnough) {
  const Profile found = measure({way("A", 3e6), way("B", 1)}, {30, 2000, 4});
  EXPECT_EQ(trace_, "A|");
  EXPECT_EQ(found.times[0].rounds, 0u);
  EXPECT_EQ(select(found.times, 0).way, "A");
}

TEST_F(ProfileTest, TheClockOfTheMachineIsMonotone) {
  const uint64_t before = steady_clock_ns();
  EXPECT_GE(steady_clock_ns(), before);
}

}  // namespace
}  // namespace millrace

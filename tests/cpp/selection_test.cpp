// Tests for cpp/selection.cpp.
#include "selection.h"

#include <gtest/gtest.h>

#include "status.h"

namespace millrace {
namespace {

RunTimes times(const std::string& way, double median_us, double deviation_us = 0.1,
               size_t rounds = 30) {
  return {way, median_us, 1.2 * median_us, deviation_us, rounds};
}

TEST(Selection, TakesTheFastestWayThatGainsEnough) {
  const Selection selection = select({times("eager", 100), times("graph", 60), times("pi", 50)}, 0);
  EXPECT_EQ(selection.way, "pi");
  EXPECT_EQ(selection.reason, "it gains 50.0 % against eager, 3.0 % are needed");
  EXPECT_EQ(selection.measured.size(), 3u);
}

TEST(Selection, StaysWhereAGainIsBelowThreePercent) {
  EXPECT_EQ(select({times("eager", 100), times("graph", 97.1)}, 0).way, "eager");
  EXPECT_EQ(select({times("eager", 100), times("graph", 96.9)}, 0).way, "graph");
  EXPECT_NE(
      select({times("eager", 100), times("graph", 97.1)}, 0).reason.find("graph, gains only 2.9 %"),
      std::string::npos);
}

TEST(Selection, StaysWhereAGainIsBelowTwiceTheDeviationOfEither) {
  EXPECT_EQ(select({times("eager", 100, 6), times("graph", 90)}, 0).way, "eager");
  EXPECT_EQ(select({times("eager", 100), times("graph", 90, 6)}, 0).way, "eager");
  EXPECT_EQ(select({times("eager", 100, 4), times("graph", 90, 4)}, 0).way, "graph");
}

TEST(Selection, TheCurrentWayIsTheOneToBeat) {
  EXPECT_EQ(select({times("eager", 98), times("graph", 100)}, 1).way, "graph");
  EXPECT_EQ(select({times("eager", 90), times("graph", 100)}, 1).way, "eager");
}

TEST(Selection, FewRoundsChangeNothing) {
  const Selection selection = select({times("eager", 100), times("graph", 10, 0.1, 9)}, 0);
  EXPECT_EQ(selection.way, "eager");
  EXPECT_EQ(selection.reason, "only 9 of 10 rounds could be measured");
}

TEST(Selection, SaysWhyNothingElseIsTaken) {
  EXPECT_EQ(select({times("eager", 1)}, 0).reason, "there is no other way");
  EXPECT_EQ(select({times("eager", 1), times("graph", 2)}, 0).reason, "no other way is faster");
  EXPECT_THROW(select({}, 0), Failure);
}

TEST(Selection, TimesAreOfTheSamples) {
  const RunTimes found = run_times("eager", {5, 1, 2, 3, 100});
  EXPECT_EQ(found.median_us, 3);
  EXPECT_EQ(found.deviation_us, 2);  // of 2, 2, 1, 0, 97
  EXPECT_NEAR(found.p99_us, 96.2, 1e-9);
  EXPECT_EQ(found.rounds, 5u);
}

SelectionKey key() { return {"p", "s", "1", "H200", "13.0", "exclusive", "alone"}; }

TEST(Selection, KeysDifferInEveryField) {
  EXPECT_EQ(key().difference(key()), "");
  const std::vector<std::string SelectionKey::*> fields = {
      &SelectionKey::program,    &SelectionKey::shapes, &SelectionKey::layout,
      &SelectionKey::device,     &SelectionKey::driver, &SelectionKey::sharing,
      &SelectionKey::concurrency};
  for (const auto field : fields) {
    SelectionKey other = key();
    other.*field = "other";
    EXPECT_NE(key().difference(other), "");
  }
  SelectionKey other = key();
  other.device = "A100";
  EXPECT_EQ(key().difference(other), "device 'A100' instead of 'H200'");
}

TEST(Selection, SurvivesJson) {
  Selection selection = select({times("eager", 100), times("graph", 60)}, 0);
  selection.profile_ms = 12.5;
  const Selection again = selection_from(to_json(selection));
  EXPECT_EQ(to_json(again), to_json(selection));
  EXPECT_EQ(again.measured[1].deviation_us, 0.1);
  EXPECT_EQ(selection_key_from(to_json(key())).difference(key()), "");
  EXPECT_THROW(selection_from({{"way", "eager"}}), nlohmann::json::exception);
}

}  // namespace
}  // namespace millrace

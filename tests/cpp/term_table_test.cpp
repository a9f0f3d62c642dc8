// Tests for term_table.h: the table is consistent and describes itself; names are suggested.
#include "term_table.h"

#include <gtest/gtest.h>

#include <set>

#include "status.h"
#include "terms.h"

namespace millrace {
namespace {

TEST(TermTable, EveryTermIsComplete) {
  std::set<std::pair<int, std::string>> names;
  std::set<std::pair<int, int>> ids;
  for (const TermInfo& info : term_table()) {
    EXPECT_TRUE(names.insert({static_cast<int>(info.kind), info.name}).second) << info.name;
    if (info.kind <= TermKind::kTermination) {
      EXPECT_TRUE(ids.insert({static_cast<int>(info.kind), info.id}).second) << info.name;
      EXPECT_LE(info.parameters.size(), size_t{kMaxTermParams}) << info.name;
    }
    EXPECT_NE(std::string(info.summary), "") << info.name;
    EXPECT_NE(std::string(info.unit), "") << info.name;
    EXPECT_EQ(info.dim != 0, info.kind == TermKind::kObservation) << info.name;
    for (const TermParameter& parameter : info.parameters) {
      EXPECT_TRUE(parameter.default_value >= parameter.min &&
                  parameter.default_value <= parameter.max)
          << info.name << "." << parameter.name;
    }
  }
  EXPECT_EQ(std::count_if(term_table().begin(), term_table().end(),
                          [](const TermInfo& t) { return t.kind == TermKind::kReward; }),
            kRewardUndesiredContacts + 1)
      << "every reward id is in the table";
}

TEST(TermTable, DescribesItself) {
  for (const auto& term : describe_terms()) {
    if (term["name"] != "feet_phase") continue;
    EXPECT_EQ(term["kind"], "reward");
    EXPECT_EQ(term["params"][0]["name"], "scale");
    EXPECT_EQ(term["params"][0]["default"], .04);
    EXPECT_EQ(term["params"][0]["unit"], "m^2");
    return;
  }
  FAIL() << "feet_phase is missing";
}

TEST(TermTable, SuggestsTheNearestName) {
  EXPECT_EQ(nearest_name("tracking_linvel", {"alive", "tracking_ang_vel", "tracking_lin_vel"}),
            "tracking_lin_vel");
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(nearest_name("x", {"y", "xy"}), "");
  EXPECT_EQ(nearest_name("sigma", {"scale"}), "");
  try {
    refuse_unknown("rewards", "reward", "alife", {"pose", "alive"});
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(),
                 "rewards: unknown reward \"alife\"; did you mean \"alive\"? Allowed: pose, alive");
    EXPECT_EQ(failure.code(), Code::kInvalid);
  }
}

}  // namespace
}  // namespace millrace

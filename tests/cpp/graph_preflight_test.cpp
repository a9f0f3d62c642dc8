// Tests for cpp/graph_preflight.cpp; the texts are held by finding_golden_test.cpp.
#include "graph_preflight.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unsound_programs.h"

namespace millrace {
namespace {

using Names = std::vector<std::string>;

Names ids_of(const std::vector<Finding>& findings) {
  Names ids;
  for (const Finding& finding : findings) ids.push_back(finding.id);
  return ids;
}

TEST(GraphPreflight, ASoundProgramHasNoFindings) {
  EXPECT_EQ(ids_of(sound_case().check()), Names{});
}

TEST(GraphPreflight, EachFlawHasItsFinding) {
  for (const Spoiler& spoiler : spoilers()) {
    GraphCase spoilt = sound_case();
    spoiler.spoil(spoilt);
    const std::vector<Finding> findings = spoilt.check();
    ASSERT_EQ(ids_of(findings), Names{spoiler.id});
    EXPECT_EQ(findings[0].subject, spoiler.subject);
    EXPECT_EQ(findings[0].verdict, Readiness::kRefused);
    EXPECT_FALSE(findings[0].reason.empty());
    EXPECT_FALSE(findings[0].hint.empty());
  }
}

TEST(GraphPreflight, WhatWasRequestedDecidesHowBadItIs) {
  for (const Spoiler& spoiler : spoilers()) {
    GraphCase spoilt = sound_case();
    spoiler.spoil(spoilt);
    spoilt.policy = GraphPolicy::kAuto;
    const std::vector<Finding> findings = spoilt.check();
    ASSERT_EQ(ids_of(findings), Names{spoiler.id});
    EXPECT_EQ(findings[0].verdict, Readiness::kEagerOnly);
    spoilt.policy = GraphPolicy::kOff;
    EXPECT_EQ(ids_of(spoilt.check()), Names{});
    EXPECT_TRUE(check_graph_backend(spoilt.backend, spoilt.policy).empty());
  }
}

TEST(GraphPreflight, ReasonsNameOpSiteAndCarrier) {
  GraphCase spoilt = sound_case();
  spoilt.program.carriers[0].is_sealed = false;
  spoilt.program.ops[1].hazards.push_back({Hazard::kAllocation, "a batch"});
  const std::vector<Finding> findings = spoilt.check();
  ASSERT_EQ(ids_of(findings), (Names{"UNSTABLE_CARRIER", "ALLOC_IN_WINDOW"}));
  for (const char* part : {"observe", "control.cpp:10", "observation"}) {
    EXPECT_NE(findings[0].reason.find(part), std::string::npos) << findings[0].reason;
  }
  for (const char* part : {"act", "control.cpp:20", "a batch"}) {
    EXPECT_NE(findings[1].reason.find(part), std::string::npos) << findings[1].reason;
  }
}

// Every flaw but the last, which hides those of the device behind it, in one program.
TEST(GraphPreflight, ReportsEverythingAtOnceTheBackendFirst) {
  GraphCase spoilt = sound_case();
  Names expected;
  for (const Spoiler& spoiler : spoilers()) {
    spoiler.spoil(spoilt);
    expected.push_back(spoiler.id);
  }
  expected.pop_back();
  spoilt.backend.has_graphs = true;
  Names ids = ids_of(spoilt.check());
  EXPECT_EQ((Names{ids.begin(), ids.begin() + 2}), (Names{"DRIVER_TOO_OLD", "PROFILER_ACTIVE"}));
  EXPECT_EQ(ids_of(check_graph_backend(spoilt.backend, spoilt.policy)).size(), 2u);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::sort(expected.begin(), expected.end());
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  EXPECT_EQ(ids, expected);
}

TEST(GraphPreflight, ACarrierIsReportedOnce) {
  GraphCase spoilt = sound_case();
  spoilt.program.carriers[0].is_sealed = false;
  spoilt.program.ops[0].reads = spoilt.program.ops[1].writes = {"observation"};
  EXPECT_EQ(ids_of(spoilt.check()), Names{"UNSTABLE_CARRIER"});
}

TEST(GraphPreflight, WhatNobodyStatedIsRefused) {
  GraphCase spoilt = sound_case();
  OpFacts op;
  op.name = "unknown";
  op.reads = {"unknown"};
  op.scalars = {{"scale"}};
  CarrierFacts carrier;
  carrier.name = "unknown";
  spoilt.program.ops.push_back(op);
  spoilt.program.carriers.push_back(carrier);
  spoilt.program.terms.push_back({});
  EXPECT_EQ(ids_of(spoilt.check()),
            (Names{"MULTI_CONTEXT", "LEGACY_STREAM", "WRONG_DEVICE", "BY_VALUE_VARYING",
                   "UNSTABLE_CARRIER", "OWNER_NOT_CERTIFIED", "OWNER_NOT_CERTIFIED"}));
}

TEST(GraphPreflight, ADriverServesRuntimesOfItsMajorVersion) {
  GraphCase newer = sound_case();
  newer.backend.device = {12000, 12080, 0, 0, ""};
  EXPECT_TRUE(newer.check().empty());
  newer.backend.device = {11030, 11030, 0, 0, ""};
  EXPECT_EQ(ids_of(newer.check()), Names{"DRIVER_TOO_OLD"});
}

TEST(GraphPreflight, TheTermTableHasAVerdictForEachTerm) {
  GraphCase spoilt = sound_case();
  spoilt.program.terms[1].term_class = TermClass::kHostEvent;
  const nlohmann::json table = term_table_of(spoilt.program, spoilt.check());
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table[0]["verdict"], "READY");
  EXPECT_EQ(table[0]["stream"], "none");
  EXPECT_EQ(table[0]["class"], "PURE");
  EXPECT_EQ(table[1]["term"], "push");
  EXPECT_EQ(table[1]["stream"], "event");
  EXPECT_EQ(table[1]["draws_per_tick"], 7);
  EXPECT_EQ(table[1]["verdict"], "REFUSED");
  EXPECT_FALSE(table[1]["hint"].get<std::string>().empty());
  EXPECT_EQ(table[2]["verdict"], "READY");
}

}  // namespace
}  // namespace millrace

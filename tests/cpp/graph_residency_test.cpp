// Tests for cpp/graph_residency.cpp.
#include "graph_residency.h"

#include <gtest/gtest.h>

#include <set>

#include "philox.h"

namespace millrace {
namespace {

using Gone = std::vector<uint64_t>;

class GraphResidencyTest : public testing::Test {
 protected:
  GraphResidency residency(uint64_t most_bytes, size_t most_graphs, uint64_t idle_ns = 1000) {
    return GraphResidency({most_bytes, most_graphs, idle_ns}, [this] { return now_ns_; });
  }
  uint64_t now_ns_ = 0;
};

TEST_F(GraphResidencyTest, TheLeastRecentlyUsedGraphGoesFirst) {
  GraphResidency graphs = residency(100, 2);
  EXPECT_TRUE(graphs.use(1, 10).may_capture);
  EXPECT_TRUE(graphs.use(2, 10).may_capture);
  EXPECT_TRUE(graphs.use(1, 10).is_resident);
  const GraphResidency::Use third = graphs.use(3, 10);
  EXPECT_FALSE(third.is_resident);
  EXPECT_EQ(third.gone, Gone{2});
  EXPECT_TRUE(graphs.use(1, 10).is_resident);
  EXPECT_EQ(graphs.bytes(), 20u);
}

TEST_F(GraphResidencyTest, BytesMakeRoomAndNothingLargerThanAllOfThemIsCaptured) {
  GraphResidency graphs = residency(100, 10);
  graphs.use(1, 40);
  graphs.use(2, 40);
  EXPECT_EQ(graphs.use(3, 90).gone, (Gone{1, 2}));
  EXPECT_EQ(graphs.bytes(), 90u);
  const GraphResidency::Use large = graphs.use(4, 101);
  EXPECT_FALSE(large.may_capture);
  EXPECT_EQ(large.gone, Gone{});
}

TEST_F(GraphResidencyTest, WhatWasNotUsedForLongGoes) {
  GraphResidency graphs = residency(100, 10, 1000);
  graphs.use(1, 10);
  now_ns_ = 900;
  graphs.use(2, 10);
  now_ns_ = 1001;
  EXPECT_EQ(graphs.use(2, 10).gone, Gone{1});
  EXPECT_EQ(graphs.describe()["resident"], 1);
}

TEST_F(GraphResidencyTest, ThrashingEndsCaptures) {
  GraphResidency graphs = residency(100, 2);
  int captures = 0;
  for (uint64_t use = 0; use < 30; ++use) captures += graphs.use(use % 5, 1).may_capture ? 1 : 0;
  EXPECT_TRUE(graphs.is_thrashing());
  EXPECT_EQ(captures, 4);  // the fifth miss is one more than twice what fits
  EXPECT_NE(graphs.reason().find("only 2 fit"), std::string::npos) << graphs.reason();
  // What is there stays.
  EXPECT_TRUE(graphs.use(2, 1).is_resident);
  EXPECT_FALSE(graphs.use(9, 1).may_capture);
}

TEST_F(GraphResidencyTest, UsesThatMostlyHitDoNotThrash) {
  GraphResidency graphs = residency(100, 4);
  for (uint64_t use = 0; use < 400; ++use) graphs.use(use % 20 == 19 ? 10 + use : use % 3, 1);
  EXPECT_FALSE(graphs.is_thrashing());
  EXPECT_EQ(graphs.describe()["evictions"], 19);
}

TEST_F(GraphResidencyTest, WhatItSaysIsResidentIsWhatWasCapturedAndIsNotGone) {
  GraphResidency graphs = residency(50, 6, 40);
  std::set<uint64_t> resident;
  for (u32 use = 0; use < 3000; ++use) {
    const RandomSource source = random_source(3, kStreamEvent, use, 0);
    now_ns_ += random_index(source, 0, 6);
    const uint64_t id = random_index(source, 1, use % 200 < 150 ? 5 : 30);
    const GraphResidency::Use answer = graphs.use(id, 1 + id);
    EXPECT_EQ(answer.is_resident, resident.count(id) == 1);
    for (const uint64_t gone : answer.gone) EXPECT_EQ(resident.erase(gone), 1u);
    if (!answer.is_resident && answer.may_capture) resident.insert(id);
    EXPECT_EQ(graphs.describe()["resident"], resident.size());
    EXPECT_LE(graphs.bytes(), 50u);
    EXPECT_LE(resident.size(), 6u);
  }
}

}  // namespace
}  // namespace millrace

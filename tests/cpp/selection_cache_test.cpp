// Tests for cpp/selection_cache.cpp.
#include "selection_cache.h"

#include <gtest/gtest.h>

#include <fstream>

#include "temporary_folder.h"

namespace millrace {
namespace {

constexpr int64_t kNow = 1800000000;

SelectionKey key() { return {"batch 8", "p", "1", "H200", "13.0", "exclusive", "alone"}; }

Selection taken(const std::string& way) {
  Selection selection;
  selection.way = way;
  selection.reason = "measured";
  selection.measured = {{"eager", 2, 3, 0.1, 30}, {"graph", 1, 1.5, 0.1, 30}};
  return selection;
}

class SelectionCacheTest : public testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(path_) << text; }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "selection.json";
};

TEST_F(SelectionCacheTest, OutlivesTheProcess) {
  {
    SelectionCache cache(path_, kNow);
    EXPECT_EQ(cache.read_error(), "");
    EXPECT_EQ(cache.find("update", key()).why_not, "it was not measured before");
    cache.put("update", key(), taken("graph"));
    EXPECT_EQ(cache.write_error(), "");
  }
  SelectionCache cache(path_, kNow + 1);
  const SelectionCache::Lookup lookup = cache.find("update", key());
  ASSERT_TRUE(lookup.found);
  EXPECT_EQ(lookup.found->way, "graph");
  EXPECT_EQ(lookup.found->measured[1].median_us, 1);
  EXPECT_FALSE(cache.find("learner", key()).found);
}

TEST_F(SelectionCacheTest, AnotherKeyIsAnotherSelectionAndSaysWhatDiffers) {
  SelectionCache cache(path_, kNow);
  cache.put("update", key(), taken("graph"));
  SelectionKey other = key();
  other.device = "A100";
  EXPECT_EQ(cache.find("update", other).why_not,
            "measured before for device 'H200' instead of 'A100'");
  other = key();
  other.shapes = "batch 16";
  EXPECT_EQ(cache.find("update", other).why_not,
            "measured before for shapes 'batch 8' instead of 'batch 16'");
  other = key();
  other.driver = "14.0";
  EXPECT_FALSE(cache.find("update", other).found);
  cache.put("update", other, taken("eager"));
  EXPECT_EQ(cache.find("update", other).found->way, "eager");
  EXPECT_EQ(cache.find("update", key()).found->way, "graph");
  cache.put("update", key(), taken("eager"));
  EXPECT_EQ(cache.size(), 2u);
}

TEST_F(SelectionCacheTest, AFileThatCannotBeReadIsIgnoredWithTheReason) {
  for (const char* text : {"{", "[]", "{\"schema\": 1}", "{\"schema\": 1, \"selections\": [{}]}"}) {
    write(text);
    SelectionCache cache(path_, kNow);
    EXPECT_NE(cache.read_error().find("it is no selection cache"), std::string::npos) << text;
    EXPECT_EQ(cache.find("update", key()).why_not, cache.read_error());
    EXPECT_EQ(cache.size(), 0u);
  }
  EXPECT_NE(SelectionCache(folder_ / ".", kNow).read_error().find(folder_ / ".: it is"),
            std::string::npos)
      << "a folder in its place";
  write("{\"schema\": 7}");
  EXPECT_NE(SelectionCache(path_, kNow).read_error().find("its schema is 7, not 1"),
            std::string::npos);
}

TEST_F(SelectionCacheTest, WhatCannotBeWrittenIsNoErrorOfTheRun) {
  SelectionCache cache(folder_ / "no/such/folder.json", kNow);
  cache.put("update", key(), taken("graph"));
  EXPECT_NE(cache.write_error(), "");
  EXPECT_TRUE(cache.find("update", key()).found);
}

TEST_F(SelectionCacheTest, WithoutAPathNothingIsKept) {
  SelectionCache cache("", kNow);
  cache.put("update", key(), taken("graph"));
  EXPECT_TRUE(cache.find("update", key()).found);
  EXPECT_EQ(cache.write_error(), "");
}

TEST_F(SelectionCacheTest, OldOnesAreDropped) {
  SelectionCache(path_, kNow).put("update", key(), taken("graph"));
  EXPECT_EQ(SelectionCache(path_, kNow + SelectionCache::kIdleSeconds).size(), 1u);
  EXPECT_EQ(SelectionCache(path_, kNow + SelectionCache::kIdleSeconds + 1).size(), 0u);
  // What is used stays.
  SelectionCache(path_, kNow + SelectionCache::kIdleSeconds).find("update", key());
  EXPECT_EQ(SelectionCache(path_, kNow + SelectionCache::kIdleSeconds + 1).size(), 1u);
  SelectionCache cache("", kNow);
  for (size_t i = 0; i < SelectionCache::kMostEntries + 5; ++i) {
    cache.put("program " + std::to_string(i), key(), taken("graph"));
  }
  EXPECT_EQ(cache.size(), SelectionCache::kMostEntries);
}

}  // namespace
}  // namespace millrace

// Tests for cpp/drift_watch.cpp.
#include "drift_watch.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Windows of equal times, but for `tail` of them.
bool observe(DriftWatch& watch, double us, int windows, double tail_us = 0, size_t tail = 0) {
  bool has_asked = false;
  for (int window = 0; window < windows; ++window) {
    for (size_t i = 0; i < DriftWatch::kWindow; ++i) {
      has_asked = watch.observe(i < tail ? tail_us : us) || has_asked;
    }
  }
  return has_asked;
}

TEST(DriftWatch, TwoWindowsWithAnotherMedianAskForAProfile) {
  DriftWatch watch;
  EXPECT_FALSE(observe(watch, 100, 3));
  EXPECT_FALSE(observe(watch, 116, 1));
  EXPECT_TRUE(observe(watch, 116, 1));
  EXPECT_EQ(watch.reason(), "the median went from 100.0 to 116.0 us (+16 %)");
  EXPECT_EQ(watch.windows(), 5u);
}

TEST(DriftWatch, FasterIsDriftToo) {
  DriftWatch watch;
  observe(watch, 100, 1);
  EXPECT_TRUE(observe(watch, 84, 2));
}

TEST(DriftWatch, LittleDriftOrOneWindowOfItIsNone) {
  DriftWatch watch;
  observe(watch, 100, 1);
  EXPECT_FALSE(observe(watch, 114, 10));
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(observe(watch, 200, 1));
    EXPECT_FALSE(observe(watch, 100, 1));
  }
  EXPECT_EQ(watch.reason(), "");
}

TEST(DriftWatch, ALongTailIsDrift) {
  DriftWatch watch;
  observe(watch, 100, 1);
  EXPECT_FALSE(observe(watch, 100, 4, 128, 3));
  EXPECT_TRUE(observe(watch, 100, 2, 140, 3));
  EXPECT_NE(watch.reason().find("the 99th percentile"), std::string::npos);
}

TEST(DriftWatch, RestsLongerAfterEachProfile) {
  DriftWatch watch;
  observe(watch, 100, 1);
  ASSERT_TRUE(observe(watch, 200, 2));
  watch.selected_again();
  observe(watch, 200, 1);  // what the next ones are compared with
  EXPECT_FALSE(observe(watch, 400, 8 + 1));
  EXPECT_TRUE(observe(watch, 400, 1));
  watch.selected_again();
  observe(watch, 400, 1);
  EXPECT_FALSE(observe(watch, 100, 16 + 1));
  EXPECT_TRUE(observe(watch, 100, 1));
}

}  // namespace
}  // namespace millrace

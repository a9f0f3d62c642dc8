// Tests for cpp/layout.h.
#include "layout.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(RowLayout, WalkFlatHasTheWidthAndOffsetsOfTheContract) {
  constexpr RowLayout kLayout{98, 29, 101};
  EXPECT_EQ(kLayout.observation(), 0);
  EXPECT_EQ(kLayout.next_observation(), 98);
  EXPECT_EQ(kLayout.action(), 196);
  EXPECT_EQ(kLayout.reward(), 225);
  EXPECT_EQ(kLayout.done(), 226);
  EXPECT_EQ(kLayout.truncated(), 227);
  EXPECT_EQ(kLayout.critic(), 228);
  EXPECT_EQ(kLayout.next_critic(), 329);
  EXPECT_EQ(kLayout.width(), 430);
  EXPECT_EQ(kLayout.row_bytes(), 1720u);
}

TEST(RowLayout, DeviceRowsArePaddedToSixteenBytes) {
  EXPECT_EQ((RowLayout{98, 29, 101}.row_stride_bytes()), 1728u);
  EXPECT_EQ((RowLayout{98, 29, 101}.row_stride()), 432);
  EXPECT_EQ((RowLayout{3, 1, 1}.row_stride()), 12);  // width 12 needs none
}

TEST(RowLayout, MotionTrackingHas930Floats) { EXPECT_EQ((RowLayout{160, 29, 289}.width()), 930); }

}  // namespace
}  // namespace millrace

// Tests for cpp/bf16.h.
#include "bf16.h"

#include <gtest/gtest.h>

#include <cmath>

namespace millrace {
namespace {

TEST(Bf16, KeepsWhatFitsAndRoundsTheRestToTheNearestEven) {
  for (const float value : {0.0f, -1.5f, 256.0f, INFINITY}) {
    EXPECT_EQ(from_bf16(to_bf16(value)), value);
  }
  // Neighbours of 1 are 2^-7 apart; half way goes to the even one.
  constexpr float kStep = 0.0078125f;
  EXPECT_EQ(from_bf16(to_bf16(1 + 0.4f * kStep)), 1);
  EXPECT_EQ(from_bf16(to_bf16(1 + 0.6f * kStep)), 1 + kStep);
  EXPECT_EQ(from_bf16(to_bf16(1 + 0.5f * kStep)), 1);
  EXPECT_EQ(from_bf16(to_bf16(1 + 1.5f * kStep)), 1 + 2 * kStep);
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(NAN))));
}

}  // namespace
}  // namespace millrace

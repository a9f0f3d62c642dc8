#include "quantile.h"

#include <gtest/gtest.h>

#include "status.h"

namespace millrace {
namespace {

TEST(Quantile, LiesLinearlyBetweenTheNearestValues) {
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.0), 1);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 1.0), 4);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.25), 1.75);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(interquartile_range({1, 2, 3, 4}), 1.5);
}

TEST(Quantile, OfNothingIsABug) { EXPECT_THROW(median({}), Failure); }

}  // namespace
}  // namespace millrace

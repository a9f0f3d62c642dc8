// Tests for cpp/algorithm.cpp.
#include "algorithm.h"

#include <gtest/gtest.h>

#include "status.h"

namespace millrace {
namespace {

TEST(Algorithm, NamesGoBothWaysAndOthersAreRefused) {
  for (const Algorithm each : {Algorithm::kFastSac, Algorithm::kFlashSac}) {
    EXPECT_EQ(algorithm_named(to_string(each)), each);
  }
  EXPECT_EQ(algorithm_named("flashsac"), Algorithm::kFlashSac);
  try {
    algorithm_named("ppo");
    ADD_FAILURE();
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(), "algo: 'ppo' is not one of fastsac, flashsac");
  }
}

}  // namespace
}  // namespace millrace

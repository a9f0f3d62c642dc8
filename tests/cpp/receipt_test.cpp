// Tests for cpp/receipt.cpp.
#include "receipt.h"

#include <gtest/gtest.h>

#include <string>

#include "status.h"

namespace millrace {
namespace {

TEST(Receipt, OfTheExpectedOperationPasses) {
  EXPECT_NO_THROW(expect_operation({Operation::kStep, 1, 0}, Operation::kStep));
}

TEST(Receipt, OfAnotherOperationIsABugNamingBoth) {
  try {
    expect_operation({Operation::kUpdate, 9, 0}, Operation::kStep);
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kBug);
    EXPECT_STREQ(failure.what(), "waited for a STEP receipt but was given UPDATE 9");
  }
}

}  // namespace
}  // namespace millrace

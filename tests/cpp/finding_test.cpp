// Tests for cpp/finding.cpp.
#include "finding.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Finding, BecomesJson) {
  const nlohmann::json json =
      to_json(Finding{"BUDGET_HOST", Readiness::kRefused, "subject", "reason", "hint"});
  EXPECT_EQ(json["verdict"], "REFUSED");
  EXPECT_EQ(json["id"], "BUDGET_HOST");
  EXPECT_EQ(json.size(), 5u);
}

}  // namespace
}  // namespace millrace

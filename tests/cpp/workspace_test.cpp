// Tests for cpp/workspace.cpp.
#include "workspace.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Workspace, CarriersAreZeroedAlignedAndApart) {
  Workspace workspace;
  const Operand a = workspace.add_floats("a", 3), b = workspace.add("b", DType::kU64, 1);
  EXPECT_EQ(workspace.bytes(), 128u);  // a cache line each
  workspace.allocate();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(workspace.floats(a)) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(workspace.counters(b)) % 64, 0u);
  workspace.floats(a)[2] = 1.0f;
  EXPECT_EQ(*workspace.counters(b), 0u);
  EXPECT_EQ(workspace.floats(a + 2), workspace.floats(a) + 2);
  EXPECT_EQ(workspace.find("b").carrier, b.carrier);
}

TEST(Workspace, AddressesAreFixedOnceAllocated) {
  Workspace workspace;
  workspace.add_floats("a", 1);
  EXPECT_THROW(workspace.add_floats("a", 1), Failure);
  workspace.allocate();
  EXPECT_THROW(workspace.add_floats("b", 1), Failure);
  EXPECT_THROW(workspace.allocate(), Failure);
  EXPECT_THROW(workspace.find("b"), Failure);
}

}  // namespace
}  // namespace millrace

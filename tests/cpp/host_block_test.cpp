// Tests for cpp/host_block.cpp.
#include "host_block.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace millrace {
namespace {

TEST(HostBlockTest, GivesEveryCarrierCacheLinesOfItsOwn) {
  HostBlockLayout layout;
  EXPECT_EQ(layout.add(4), 0u);
  EXPECT_EQ(layout.add(64), 64u);
  EXPECT_EQ(layout.add(0), 128u);
  EXPECT_EQ(layout.add(65), 128u);
  EXPECT_EQ(layout.bytes(), 256u);
}

TEST(HostBlockTest, IsClearedAndAlignedFromTheHeapAndFromADevice) {
  HostBlockLayout layout;
  const uint64_t second = (layout.add(100), layout.add(200));
  Backend backend(backend_cpu());
  for (Backend* device : {static_cast<Backend*>(nullptr), &backend}) {
    const HostBlock block(layout, device);
    const HostRange range = block.range();
    EXPECT_EQ(range.bytes, layout.bytes());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(range.begin) % 64, 0u);
    EXPECT_EQ(block.at(second), range.begin + second);
    EXPECT_TRUE(std::all_of(range.begin, range.begin + range.bytes, [](char c) { return !c; }));
  }
}

TEST(HostBlockTest, OfNoCarriersIsStillMemory) {
  EXPECT_NE(HostBlock(HostBlockLayout(), nullptr).range().begin, nullptr);
}

}  // namespace
}  // namespace millrace

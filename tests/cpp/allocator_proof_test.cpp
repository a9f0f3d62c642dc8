// Tests for cpp/allocator_proof.cpp: what counts as a change, and where it came from.
#include "allocator_proof.h"

#include <gtest/gtest.h>

#include <memory>

#include "fake_cuda.h"
#include "host_block.h"

namespace millrace {
namespace {

class AllocatorProofTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(FakeCuda::take_violations(), std::vector<std::string>{}); }
  MemoryCensus& driver() { return FakeCuda::of(backend_).driver_memory(); }

  Backend backend_{fake_cuda()};
  AllocatorProof proof_{backend_};
};

std::string site_of(int line) { return "allocator_proof_test.cpp:" + std::to_string(line); }

TEST_F(AllocatorProofTest, SaysNothingBeforeItBegins) {
  const Memory memory(backend_, Memory::Kind::kDevice, 4);
  const nlohmann::json nothing = {
      {"own_changes", 0}, {"graph_bytes", 0}, {"pool_bytes", 0}, {"device_bytes", 0}, {"runs", 0}};
  EXPECT_EQ(proof_.describe(), nothing);
  proof_.begin();
  EXPECT_EQ(proof_.check_own(), std::nullopt);
  EXPECT_EQ(proof_.describe(), nothing);
}

TEST_F(AllocatorProofTest, NamesTheSiteOfTheLastChange) {
  proof_.begin();
  auto first = std::make_unique<Memory>(backend_, Memory::Kind::kDevice, 4);
  const Memory second(backend_, Memory::Kind::kPinnedHost, 4);
  const int line = __LINE__;
  const std::string changed = " blocks of device or pinned memory were allocated or freed, the ";
  EXPECT_EQ(proof_.check_own(), "ALLOC_IN_WINDOW: 2" + changed + "last at " + site_of(line - 1));
  first.reset();
  EXPECT_NE(proof_.check_own()->find("ALLOC_IN_WINDOW: 3"), std::string::npos);
  EXPECT_EQ(proof_.describe().at("own_changes"), 3);
}

// The site is where the owner asks for memory, not the library's way to make an object.
TEST_F(AllocatorProofTest, MemoryBehindAPointerNamesItsOwner) {
  HostBlockLayout layout;
  layout.add(64);
  proof_.begin();
  const HostBlock block(layout, &backend_);
  EXPECT_NE(proof_.check_own()->find("the last at host_block.cpp:"), std::string::npos);
}

TEST_F(AllocatorProofTest, AnAllocationThatFailedCountsToo) {
  proof_.begin();
  EXPECT_THROW(Memory(backend_, Memory::Kind::kDevice, UINT64_MAX), Failure);
  const int line = __LINE__;
  EXPECT_NE(proof_.check_own()->find(site_of(line - 1)), std::string::npos);
}

TEST_F(AllocatorProofTest, AnotherBackendsMemoryDoesNotCount) {
  Backend other(fake_cuda());
  proof_.begin();
  const Memory memory(other, Memory::Kind::kDevice, 4);
  EXPECT_EQ(proof_.check_own(), std::nullopt);
}

TEST_F(AllocatorProofTest, MemoryOfGraphsAndPoolsCountsOverTheWholeTime) {
  driver().graph_used_bytes = 5;
  driver().pool_reserved_bytes = 7;
  proof_.begin();
  proof_.before_run();
  EXPECT_EQ(proof_.after_run(), std::nullopt);
  driver().graph_used_bytes += 3;
  proof_.before_run();
  EXPECT_EQ(proof_.after_run(),
            "ALLOC_IN_WINDOW: memory of graph nodes changed by 3 bytes during a run");
  driver().graph_used_bytes -= 3;
  driver().pool_used_bytes += 9;
  proof_.before_run();
  EXPECT_EQ(proof_.after_run(),
            "ALLOC_IN_WINDOW: the stream-ordered pool changed by 9 bytes during a run");
  EXPECT_EQ(proof_.describe().at("pool_bytes"), 9);
  EXPECT_EQ(proof_.describe().at("graph_bytes"), 0);
  EXPECT_EQ(proof_.runs(), 3u);
}

TEST_F(AllocatorProofTest, MemoryOfTheDeviceCountsWithinARunOnly) {
  proof_.begin();
  driver().device_used_bytes += 1000;  // another process
  proof_.before_run();
  EXPECT_EQ(proof_.after_run(), std::nullopt);
  proof_.before_run();
  driver().device_used_bytes += 10;
  EXPECT_EQ(proof_.after_run(),
            "ALLOC_IN_WINDOW: memory in use on the device changed by 10 bytes during a run");
  EXPECT_EQ(proof_.describe().at("device_bytes"), 10);
}

}  // namespace
}  // namespace millrace

// Tests for cpp/backend_cpu.cpp.
#include <gtest/gtest.h>

#include <vector>

#include "backend.h"

namespace millrace {
namespace {

TEST(BackendCpu, MemoryIsAlignedAndZeroed) {
  Backend backend(backend_cpu());
  for (uint64_t bytes : {4, 100, 1 << 20}) {
    Memory device(backend, Memory::Kind::kDevice, bytes);
    Memory host(backend, Memory::Kind::kPinnedHost, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(device.floats()) % 256, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(host.floats()) % 64, 0u);
    for (uint64_t i = 0; i < bytes / 4; ++i) ASSERT_EQ(device.floats()[i], 0.0f);
  }
  EXPECT_GT(backend.memory_free_bytes(), 0u);
}

TEST(BackendCpu, MemoryThatCannotBeHadIsAResourceFailureNamingTheCall) {
  Backend backend(backend_cpu());
  try {
    Memory memory(backend, Memory::Kind::kDevice, UINT64_MAX);
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kResource);
    EXPECT_NE(std::string(failure.what()).find("allocating device memory failed on cpu"),
              std::string::npos);
  }
}

TEST(BackendCpu, CopyRowsKeepsPitchesApart) {
  Backend backend(backend_cpu());
  Stream stream(backend);
  const std::vector<float> source = {1, 2, 3, 4, 5, 6};
  std::vector<float> target(8, -1);
  stream.copy_rows(target.data(), 16, source.data(), 12, 12, 2);  // 3 floats into rows of 4
  EXPECT_EQ(target, (std::vector<float>{1, 2, 3, -1, 4, 5, 6, -1}));
}

TEST(BackendCpu, EventIsCompleteOnceRecorded) {
  Backend backend(backend_cpu());
  Stream stream(backend);
  Event event(backend);
  EXPECT_FALSE(event.is_complete());
  stream.record(event);
  EXPECT_TRUE(event.is_complete());
}

}  // namespace
}  // namespace millrace

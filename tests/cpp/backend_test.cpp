// Tests for cpp/backend.cpp, cpp/backend_cpu.cpp and cpp/gather.h.
#include "backend.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "delayed_backend.h"

namespace millrace {
namespace {

TEST(Backends, CpuIsAvailableAndTheOthersSayWhyNot) {
  const std::vector<BackendInfo> all = backends();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "cpu");
  EXPECT_TRUE(all[0].available);
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_FALSE(all[i].available);
    EXPECT_EQ(all[i].reason, "not built");
  }
}

TEST(Backends, AnUnavailableOrUnknownOneIsRefusedWithTheReason) {
  try {
    backend_api("cuda");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kUnavailable);
    EXPECT_STREQ(failure.what(), "device cuda is unavailable: not built");
  }
  try {
    backend_api("mps");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kInvalid);
  }
}

TEST(Backend, RefusesAnotherInterfaceVersion) {
  BackendApi other = backend_cpu();
  other.api_version = kBackendApiVersion + 1;
  EXPECT_THROW(Backend{other}, Failure);
}

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
    Memory memory(backend, Memory::Kind::kDevice, UINT64_MAX - 4096);
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

TEST(Stream, AnotherThreadThatSubmitsIsRefusedNamingBoth) {
  Backend backend(backend_cpu());
  Stream stream(backend);
  Event event(backend);
  stream.record(event);
  std::string message;
  std::thread other([&] {
    try {
      stream.record(event);
    } catch (const Failure& failure) {
      message = failure.what();
    }
  });
  other.join();
  EXPECT_NE(message.find("whose submit thread is"), std::string::npos) << message;
}

TEST(Gather, IsAFunctionOfSeedTickAndRangeOnly) {
  std::vector<float> ring(8), batch(4), again(4);
  for (int i = 0; i < 8; ++i) ring[i] = static_cast<float>(100 + i);
  Gather gather{batch.data(), ring.data(), 8, 1, 4, 5, 6, 2, 7};
  Backend backend(backend_cpu());
  Stream stream(backend);
  stream.gather(gather);
  gather.batch = again.data();
  stream.gather(gather);
  EXPECT_EQ(batch, again);
  gather.tick = 7;
  stream.gather(gather);
  EXPECT_NE(batch, again);
}

TEST(Gather, DrawsEveryRowOfItsRangeEvenlyAndNoOther) {
  Gather gather{nullptr, nullptr, 1000, 1, 0, 1, 2, 995, 1005};
  std::vector<int> histogram(10, 0);
  constexpr int kDraws = 100000;
  for (u64 i = 0; i < kDraws; ++i) {
    const u64 row = gather_row(gather, i);
    ASSERT_TRUE(row >= 995 && row < 1005);
    ++histogram[row - 995];
  }
  for (int count : histogram) EXPECT_NEAR(count, kDraws / 10, 475);  // 5 sigma
}

TEST(Gather, TakesRowsModuloTheCapacity) {
  std::vector<float> ring = {8, 9, 10, 11, 4, 5, 6, 7};  // rows 4..11 of a ring of 8
  std::vector<float> batch(64);
  const Gather gather{batch.data(), ring.data(), 8, 1, 64, 1, 2, 4, 12};
  backend_cpu().gather_async(nullptr, &gather);
  std::set<float> seen(batch.begin(), batch.end());
  for (u64 i = 0; i < 64; ++i) EXPECT_EQ(batch[i], static_cast<float>(gather_row(gather, i)));
  EXPECT_EQ(seen.size(), 8u);
}

TEST(DelayedBackend, CompletesInOrderAndOnlyWhenStepped) {
  Backend backend(delayed_backend());
  Stream stream(backend);
  Event first(backend), second(backend);
  float source = 1, target = 0;
  stream.copy_rows(&target, 4, &source, 4, 4, 1);
  stream.record(first);
  stream.record(second);
  source = 2;  // read when the copy runs
  EXPECT_FALSE(first.is_complete());
  DelayedDevice::of(backend).step();
  EXPECT_EQ(target, 2.0f);
  EXPECT_FALSE(first.is_complete());
  DelayedDevice::of(backend).step();
  EXPECT_TRUE(first.is_complete());
  EXPECT_FALSE(second.is_complete());
  second.wait();
  EXPECT_TRUE(second.is_complete());
}

}  // namespace
}  // namespace millrace

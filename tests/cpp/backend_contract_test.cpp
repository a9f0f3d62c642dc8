// Tests for cpp/backend_cpu.cpp and the plug-ins: what every backend must do, on each one that this
// machine has.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "each_backend.h"
#include "graph_backends.h"

namespace millrace {
namespace {

class BackendContract : public testing::TestWithParam<std::string> {
 protected:
  Backend backend_{graph_backend_api(GetParam())};
  Transfer transfer_{backend_};
};

MR_ON_EACH_BACKEND(BackendContract);
INSTANTIATE_TEST_SUITE_P(OnFake, BackendContract, testing::Values(fake_cuda().name),
                         backend_of_test);

TEST_P(BackendContract, MemoryIsAlignedAndZeroed) {
  for (uint64_t bytes : {4, 100, 1 << 20}) {
    Memory device(backend_, Memory::Kind::kDevice, bytes);
    Memory host(backend_, Memory::Kind::kPinnedHost, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(device.floats()) % 256, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(host.floats()) % 64, 0u);
    const std::vector<float> zeros(bytes / 4, 0.0f);
    EXPECT_EQ(transfer_.read(device.floats(), bytes / 4), zeros);
    EXPECT_EQ(std::vector<float>(host.floats(), host.floats() + bytes / 4), zeros);
  }
  EXPECT_GT(backend_.memory_free_bytes(), 0u);
}

TEST_P(BackendContract, MemoryThatCannotBeHadIsAResourceFailureNamingTheCall) {
  for (const auto kind : {Memory::Kind::kDevice, Memory::Kind::kPinnedHost}) {
    try {
      Memory memory(backend_, kind, UINT64_MAX);
      FAIL();
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Code::kResource);
      EXPECT_NE(std::string(failure.what()).find("memory failed on " + GetParam() + ": "),
                std::string::npos)
          << failure.what();
    }
  }
  Memory memory(backend_, Memory::Kind::kDevice, 4);  // the device is still good
  EXPECT_EQ(transfer_.read(memory.floats(), 1), std::vector<float>{0});
}

TEST_P(BackendContract, TheFirstErrorIsKeptWithItsOperationPlaceCodeAndMeaning) {
  const auto fail = [&](Memory::Kind kind) {
    EXPECT_THROW(Memory(backend_, kind, UINT64_MAX), Failure);
    BackendError error{};
    backend_.api().last_error(backend_.device(), &error);
    return error;
  };
  const BackendError first = fail(Memory::Kind::kDevice);
  EXPECT_NE(first.code, 0);
  for (const char* text : {first.operation, first.site, first.meaning}) EXPECT_STRNE(text, "");
  const BackendError second = fail(Memory::Kind::kPinnedHost);
  EXPECT_STREQ(second.operation, first.operation);
  EXPECT_STREQ(second.site, first.site);
  EXPECT_EQ(second.code, first.code);
}

TEST_P(BackendContract, CopyRowsKeepsPitchesApart) {
  Memory target(backend_, Memory::Kind::kDevice, 32);
  transfer_.write(target.floats(), std::vector<float>(8, -1));
  const std::vector<float> source = {1, 2, 3, 4, 5, 6};
  Stream stream(backend_);
  Event event(backend_);
  stream.copy_rows(CopyDirection::kHostToDevice, target.floats(), 16, source.data(), 12, 12,
                   2);  // 3 floats into rows of 4
  stream.record(event);
  event.wait();
  EXPECT_EQ(transfer_.read(target.floats(), 8), (std::vector<float>{1, 2, 3, -1, 4, 5, 6, -1}));
}

TEST_P(BackendContract, EventIsCompleteOnceRecordedAndReached) {
  Stream stream(backend_);
  Event event(backend_);
  EXPECT_FALSE(event.is_complete());
  stream.record(event);
  event.wait();
  EXPECT_TRUE(event.is_complete());
}

// Rows 2^33 and on of a ring of 7: strides with and without 16-byte pieces, more pieces than one
// pass of a warp takes, a batch that no block size divides.
TEST_P(BackendContract, GatherTakesTheRowsOfTheRuleModuloTheCapacity) {
  constexpr uint64_t kCapacity = 7, kCount = 101, kFirst = uint64_t{1} << 33;
  for (uint64_t stride : {1, 3, 4, 16, 432, 932}) {
    std::vector<float> values(kCapacity * stride);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    Memory ring(backend_, Memory::Kind::kDevice, values.size() * sizeof(float));
    Memory batch(backend_, Memory::Kind::kDevice, kCount * stride * sizeof(float));
    transfer_.write(ring.floats(), values);
    const BatchColumns whole{static_cast<u32>(stride), 0, {}};
    const Gather gather{batch.floats(), ring.floats(),      kCapacity, stride, kCount, 5, 6,
                        kFirst,         kFirst + kCapacity, whole};
    Stream stream(backend_);
    Event event(backend_);
    stream.gather(gather);
    stream.record(event);
    event.wait();
    const std::vector<float> rows = transfer_.read(batch.floats(), kCount * stride);
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < kCount; ++i) {
      const uint64_t row = gather_row(gather, i) % kCapacity;
      seen.insert(row);
      for (uint64_t j = 0; j < stride; ++j) {
        ASSERT_EQ(rows[i * stride + j], values[row * stride + j]) << stride << " " << i << " " << j;
      }
    }
    EXPECT_EQ(seen.size(), kCapacity);
  }
}

}  // namespace
}  // namespace millrace

// Every backend against the CPU, which is the specification: the same rows in give the same
// committed ring and the same batches out, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "each_backend.h"
#include "replay.h"
#include "tagged_rows.h"

namespace millrace {
namespace {

constexpr RowLayout kWalkFlat{98, 29, 101};   // width 430, padded to 432
constexpr RowLayout kTracking{160, 29, 289};  // width 930, padded to 932
constexpr uint64_t kEnvs = 37;
constexpr uint64_t kSamples = 70;
constexpr uint64_t kSeed = 23;

struct Outcome {
  std::vector<std::vector<float>> batches;
  std::vector<float> ring;  // as a checkpoint reads it
  uint64_t wraps;
};

// The batch holds whole rows, and those that the rule of gather.h names.
void expect_rows(const std::vector<float>& batch, const RowLayout& layout, uint64_t capacity,
                 const SampleRange& range) {
  const uint64_t stride = static_cast<uint64_t>(layout.row_stride());
  const Gather gather{nullptr, nullptr,    capacity,  stride,     kSamples,
                      kSeed,   range.tick, range.low, range.high, {}};
  for (uint64_t i = 0; i < kSamples; ++i) {
    EXPECT_EQ(read_tagged(&batch[i * stride], layout), gather_row(gather, i)) << i;
  }
}

// Synchronous ticks until the ring was gone round three times. The capacity leaves a remainder that
// is smaller than a chunk, so copies split at the wrap, each time elsewhere.
Outcome run_ticks(const std::string& name, const RowLayout& layout, int depth) {
  const uint64_t capacity = (static_cast<uint64_t>(depth) + 1) * kEnvs + 5;
  Backend backend(test_backend_api(name));
  FirstError first_error;
  Replay replay(backend, {layout, kEnvs, capacity, depth, kSamples, kSeed, 1}, first_error);
  Transfer transfer(backend);
  Outcome outcome{};
  uint64_t tick = 0;
  for (; replay.counters().wraps < 3; ++tick) {
    replay.request(tick);
    write_tagged_rows(replay.counters().published, kEnvs, layout, replay.claim());
    replay.publish();
    replay.progress(true);
    const uint64_t floats = kSamples * static_cast<uint64_t>(layout.row_stride());
    outcome.batches.push_back(transfer.read(replay.take(tick), floats));
    expect_rows(outcome.batches.back(), layout, capacity, replay.taken());
  }
  const ReplayCounters counters = replay.counters();
  outcome.wraps = counters.wraps;
  StateRegistry registry;
  replay.register_state(registry);
  const StateTensor& rows = registry.tensors().front();
  outcome.ring.resize(rows.bytes() / sizeof(float));
  rows.read(0, outcome.ring.data(), rows.bytes());
  for (uint64_t row = counters.committed - capacity; row < counters.committed; ++row) {
    const uint64_t at = row % capacity * static_cast<uint64_t>(layout.row_stride());
    EXPECT_EQ(read_tagged(&outcome.ring[at], layout), row);
  }
  return outcome;
}

class ReplayParity : public testing::TestWithParam<std::string> {};

MR_ON_EACH_BACKEND(ReplayParity);

TEST_P(ReplayParity, RingAndBatchesEqualTheCpuAtEveryDepthAndWidth) {
  for (const RowLayout& layout : {kWalkFlat, kTracking}) {
    for (int depth = 1; depth <= 8; ++depth) {
      SCOPED_TRACE("width " + std::to_string(layout.width()) + " depth " + std::to_string(depth));
      const Outcome cpu = run_ticks("cpu", layout, depth);
      const Outcome device = run_ticks(GetParam(), layout, depth);
      ASSERT_GE(device.wraps, 3u);
      ASSERT_EQ(device.ring, cpu.ring);
      ASSERT_EQ(device.batches, cpu.batches);
      EXPECT_NE(cpu.batches[cpu.batches.size() - 2], cpu.batches.back());
    }
  }
}

// Only where the ring is not host memory: 4.3 GB of it, more than 32 bits of bytes. The fake Metal
// device has a test of its own for that, without filling them (metal_device_test.cpp).
std::vector<std::string> available_devices() {
  std::vector<std::string> names = available_backends();
  names.erase(std::remove(names.begin(), names.end(), "cpu"), names.end());
  return names;
}

class LargeReplay : public testing::TestWithParam<std::string> {};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LargeReplay);
INSTANTIATE_TEST_SUITE_P(On, LargeReplay, testing::ValuesIn(available_devices()), backend_of_test);

TEST_P(LargeReplay, RowsPastFourGigabytesKeepTheirPlaces) {
  constexpr uint64_t kChunk = 8192, kCapacity = 2500003, kLargeSamples = 32768;
  const uint64_t width = static_cast<uint64_t>(kWalkFlat.width());
  Backend backend(test_backend_api(GetParam()));
  FirstError first_error;
  Replay replay(backend, {kWalkFlat, kChunk, kCapacity, 2, kLargeSamples, kSeed, 1}, first_error);
  ASSERT_GT(replay.device_bytes(), uint64_t{1} << 32);
  // The first and the last float of a row are its index.
  while (replay.counters().published < kCapacity + 20 * kChunk) {
    const uint64_t start = replay.counters().published;
    float* slot = replay.claim();
    for (uint64_t i = 0; i < kChunk; ++i) {
      slot[i * width] = static_cast<float>(start + i);
      slot[(i + 1) * width - 1] = static_cast<float>(start + i);
    }
    replay.publish();
    replay.progress(true);
  }
  ASSERT_TRUE(replay.request_newest(1));
  replay.progress(true);
  const uint64_t stride = static_cast<uint64_t>(kWalkFlat.row_stride());
  Transfer transfer(backend);
  const std::vector<float> batch = transfer.read(replay.take(1), kLargeSamples * stride);
  const SampleRange range = replay.taken();
  ASSERT_EQ(range.high - range.low, kCapacity);
  const Gather gather{nullptr, nullptr, kCapacity, stride,     kLargeSamples,
                      kSeed,   1,       range.low, range.high, {}};
  for (uint64_t i = 0; i < kLargeSamples; ++i) {
    const float expected = static_cast<float>(gather_row(gather, i));
    ASSERT_EQ(batch[i * stride], expected) << i;
    ASSERT_EQ(batch[i * stride + width - 1], expected) << i;
  }
}

}  // namespace
}  // namespace millrace

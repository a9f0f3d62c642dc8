// Tests for cpp/pipeline.cpp, and that both pipelines give the same batches on every backend.
#include "pipeline.h"

#include <gtest/gtest.h>

#include <vector>

#include "each_backend.h"
#include "remote_backend.h"
#include "replay.h"
#include "tagged_rows.h"

namespace millrace {
namespace {

constexpr uint64_t kEnvs = 5, kCapacity = 23, kSamples = 40, kTicks = 16;

TEST(Pipeline, NamesAreReadAndUnknownOnesRefused) {
  EXPECT_EQ(pipeline("device_resident"), Pipeline::kDeviceResident);
  EXPECT_EQ(pipeline("cpu_pinned_double_buffer"), Pipeline::kCpuPinnedDoubleBuffer);
  EXPECT_THROW(pipeline("gpu"), Failure);
}

using Batches = std::vector<std::vector<float>>;

Batches batches_of(const BackendApi& api, Pipeline pipeline, Place place, BatchLayout layout) {
  Backend backend(api);
  FirstError first_error;
  Replay replay(backend,
                {kPaddedLayout, kEnvs, kCapacity, 2, kSamples, 9, 1, pipeline, place, layout},
                first_error);
  Transfer transfer(backend);
  Batches batches;
  for (uint64_t tick = 0; tick < kTicks; ++tick) {
    replay.request(tick);
    write_tagged_rows(replay.counters().published, kEnvs, kPaddedLayout, replay.claim());
    replay.publish();
    replay.progress(true);
    const float* batch = replay.take(tick);
    const uint64_t floats = kSamples * static_cast<uint64_t>(replay.batch_stride());
    batches.push_back(place == Place::kHost ? std::vector<float>(batch, batch + floats)
                                            : transfer.read(batch, floats));
  }
  return batches;
}

class Pipelines : public testing::TestWithParam<std::string> {};

MR_ON_EACH_BACKEND(Pipelines);

TEST_P(Pipelines, GiveTheSameBatchesWhereverTheLearnerIs) {
  const BackendApi& api = test_backend_api(GetParam());
  for (BatchLayout layout : {BatchLayout::kRow, BatchLayout::kSac, BatchLayout::kCritic}) {
    const Batches expected =
        batches_of(backend_cpu(), Pipeline::kDeviceResident, Place::kDevice, layout);
    for (Pipeline pipeline : {Pipeline::kDeviceResident, Pipeline::kCpuPinnedDoubleBuffer}) {
      for (Place place : {Place::kDevice, Place::kHost}) {
        EXPECT_EQ(batches_of(api, pipeline, place, layout), expected)
            << to_string(pipeline) << (place == Place::kHost ? " host " : " device ")
            << to_string(layout);
      }
    }
  }
}

// Where every byte is: rows are 13 floats in slots and 16 in ring and batches.
TEST(Pipelines, HoldTheRingOnceAndSayWhere) {
  constexpr uint64_t kSlots = 2 * kEnvs * 13 * 4, kRing = kCapacity * 64;
  constexpr uint64_t kBatches = 2 * kSamples * 64;
  Backend backend(remote_backend());
  FirstError first_error;
  const auto spec = [](Pipeline pipeline, Place place) {
    return ReplaySpec{kPaddedLayout, kEnvs, kCapacity, 2, kSamples, 9, 1, pipeline, place};
  };
  const Replay resident(backend, spec(Pipeline::kDeviceResident, Place::kDevice), first_error);
  EXPECT_EQ(resident.host_bytes(), kSlots);
  EXPECT_EQ(resident.host_batch_bytes(), 0u);
  EXPECT_EQ(resident.device_bytes(), kRing + kBatches);
  const Replay delivered(backend, spec(Pipeline::kDeviceResident, Place::kHost), first_error);
  EXPECT_EQ(delivered.host_bytes(), kSlots);
  EXPECT_EQ(delivered.host_batch_bytes(), kBatches);
  EXPECT_EQ(delivered.device_bytes(), kRing + kBatches);
  const Replay pinned(backend, spec(Pipeline::kCpuPinnedDoubleBuffer, Place::kDevice), first_error);
  EXPECT_EQ(pinned.host_bytes(), kSlots + kRing);
  EXPECT_EQ(pinned.host_batch_bytes(), kBatches);
  EXPECT_EQ(pinned.device_bytes(), kBatches);
}

}  // namespace
}  // namespace millrace

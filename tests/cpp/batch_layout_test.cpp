// Tests for cpp/batch_layout.cpp, and that the gather of every backend writes these orders.
#include "batch_layout.h"

#include <gtest/gtest.h>

#include <vector>

#include "each_backend.h"
#include "status.h"

namespace millrace {
namespace {

constexpr RowLayout kWalkFlat{98, 29, 101};
constexpr RowLayout kTracking{160, 29, 289};
constexpr RowLayout kOdd{3, 2, 1};

TEST(BatchLayout, HasTheWidthsOfItsParts) {
  EXPECT_EQ(batch_offsets(kWalkFlat, BatchLayout::kRow).width, 430);
  EXPECT_EQ(batch_offsets(kWalkFlat, BatchLayout::kSac).width, 430);
  EXPECT_EQ(batch_offsets(kWalkFlat, BatchLayout::kCritic).width, 101 + 29 + 1 + 98 + 101 + 2);
  EXPECT_EQ(batch_offsets(kTracking, BatchLayout::kSac).width, 930);
  EXPECT_EQ(batch_offsets(kTracking, BatchLayout::kSac).stride(), 932);
}

TEST(BatchLayout, PutsTheCriticsInputsSideBySide) {
  const BatchOffsets sac = batch_offsets(kWalkFlat, BatchLayout::kSac);
  EXPECT_EQ(sac.observation, 0);
  EXPECT_EQ(sac.critic, 98);
  EXPECT_EQ(sac.action, 98 + 101);
  EXPECT_EQ(sac.reward, sac.action + 29);
  EXPECT_EQ(sac.next_critic, sac.next_observation + 98);
  EXPECT_EQ(sac.truncated, 429);
  const BatchOffsets critic = batch_offsets(kWalkFlat, BatchLayout::kCritic);
  EXPECT_EQ(critic.observation, -1);
  EXPECT_EQ(critic.critic, 0);
  EXPECT_EQ(critic.action, 101);
}

TEST(BatchLayout, NamesAreReadAndUnknownOnesRefused) {
  for (const char* name : {"row", "sac", "critic"}) {
    EXPECT_STREQ(to_string(batch_layout(name)), name);
  }
  EXPECT_THROW(batch_layout("sack"), Failure);
}

// One row's columns in another order, by the offsets alone.
void put(const float* row, int from, int to, int count, std::vector<float>* batch, size_t at) {
  for (int i = 0; to >= 0 && i < count; ++i) {
    (*batch)[at + static_cast<size_t>(to + i)] = row[from + i];
  }
}

class GatherLayout : public testing::TestWithParam<std::string> {};

MR_ON_EACH_COMPUTING_BACKEND(GatherLayout);
MR_ON_FAKE_METAL(GatherLayout);

TEST_P(GatherLayout, WritesEveryColumnToItsPlaceAndNothingElse) {
  constexpr uint64_t kCapacity = 50, kCount = 37;
  Backend backend(test_backend_api(GetParam()));
  Transfer transfer(backend);
  Stream stream(backend);
  Event event(backend);
  for (const RowLayout& row : {kWalkFlat, kTracking, kOdd}) {
    const uint64_t stride = static_cast<uint64_t>(row.row_stride());
    std::vector<float> values(kCapacity * stride);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
    Memory ring(backend, Memory::Kind::kDevice, values.size() * sizeof(float));
    transfer.write(ring.floats(), values);
    for (BatchLayout layout : {BatchLayout::kRow, BatchLayout::kSac, BatchLayout::kCritic}) {
      SCOPED_TRACE(std::to_string(row.width()) + " " + to_string(layout));
      const BatchOffsets at = batch_offsets(row, layout);
      const BatchColumns columns = batch_columns(row, layout);
      std::vector<float> expected(kCount * columns.stride, -1.0f);
      Memory batch(backend, Memory::Kind::kDevice, expected.size() * sizeof(float));
      transfer.write(batch.floats(), expected);
      const Gather gather{batch.floats(), ring.floats(), kCapacity, stride, kCount, 3, 4, 60, 90,
                          columns};
      for (uint64_t i = 0; i < kCount; ++i) {
        const float* from = &values[gather_row(gather, i) % kCapacity * stride];
        const size_t to = i * columns.stride;
        put(from, row.observation(), at.observation, row.observation_dim, &expected, to);
        put(from, row.next_observation(), at.next_observation, row.observation_dim, &expected, to);
        put(from, row.action(), at.action, row.action_dim, &expected, to);
        put(from, row.reward(), at.reward, 1, &expected, to);
        put(from, row.done(), at.done, 1, &expected, to);
        put(from, row.truncated(), at.truncated, 1, &expected, to);
        put(from, row.critic(), at.critic, row.critic_dim, &expected, to);
        put(from, row.next_critic(), at.next_critic, row.critic_dim, &expected, to);
        if (layout == BatchLayout::kRow) {  // whole, padding included
          put(from, row.width(), row.width(), row.row_stride() - row.width(), &expected, to);
        }
      }
      stream.gather(gather);
      stream.record(event);
      event.wait();
      ASSERT_EQ(transfer.read(batch.floats(), expected.size()), expected);
    }
  }
}

}  // namespace
}  // namespace millrace

// Tests for cpp/gather.h.
#include "gather.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "backend.h"

namespace millrace {
namespace {

TEST(Gather, IsAFunctionOfSeedTickAndRangeOnly) {
  std::vector<float> ring(8), batch(4), again(4);
  for (int i = 0; i < 8; ++i) ring[i] = static_cast<float>(100 + i);
  Gather gather{batch.data(), ring.data(), 8, 1, 4, 5, 6, 2, 7, {1, 0, {}}};
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
  Gather gather{nullptr, nullptr, 1000, 1, 0, 1, 2, 995, 1005, {}};
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
  const Gather gather{batch.data(), ring.data(), 8, 1, 64, 1, 2, 4, 12, {1, 0, {}}};
  backend_cpu().gather_async(nullptr, &gather);
  std::set<float> seen(batch.begin(), batch.end());
  for (u64 i = 0; i < 64; ++i) EXPECT_EQ(batch[i], static_cast<float>(gather_row(gather, i)));
  EXPECT_EQ(seen.size(), 8u);
}

}  // namespace
}  // namespace millrace

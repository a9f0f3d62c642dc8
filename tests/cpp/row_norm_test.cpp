// Tests for cpp/row_norm.cpp.
#include "row_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "philox.h"

namespace millrace {
namespace {

const std::vector<RowBlock> kBlocks = {{2, 3, 5, 1.0f}, {17, 1, 4, 2.0f}, {21, 1, 3, 0.0f}};

std::vector<float> drawn() {
  std::vector<float> values(26);
  for (u32 i = 0; i < 26; ++i) {
    values[i] = random_normal(random_source(1, kStreamEvent, 0, 0), i);
  }
  return values;
}

TEST(RowNorm, RowsGetTheirLengthsAndKeepTheirDirections) {
  const std::vector<float> before = drawn();
  std::vector<float> after = before;
  scale_rows(kBlocks, after.data());
  for (const RowBlock& block : kBlocks) {
    for (int r = 0; r < block.rows; ++r) {
      const size_t first = block.first + static_cast<uint64_t>(r * block.width);
      double squares = 0, old_squares = 0, product = 0;
      for (int i = 0; i < block.width; ++i) {
        const double now = after[first + i], old = before[first + i];
        squares += now * now;
        old_squares += old * old;
        product += now * old;
      }
      const double wanted = block.length > 0 ? block.length : std::sqrt(old_squares);
      EXPECT_NEAR(std::sqrt(squares), wanted, 1e-6);
      EXPECT_NEAR(product, std::sqrt(squares * old_squares), 1e-5);
    }
  }
  for (const size_t beside : {0, 1, 24, 25}) EXPECT_EQ(after[beside], before[beside]);
}

TEST(RowNorm, ARowOfZerosStays) {
  std::vector<float> values = drawn();
  std::fill_n(values.begin() + 2, 5, 0.0f);
  scale_rows(kBlocks, values.data());
  for (int i = 2; i < 7; ++i) EXPECT_EQ(values[i], 0.0f);
  EXPECT_NE(values[7], drawn()[7]);
}

}  // namespace
}  // namespace millrace

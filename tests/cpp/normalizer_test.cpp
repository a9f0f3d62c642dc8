// Tests for cpp/normalizer.cpp.
#include "normalizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "philox.h"

namespace millrace {
namespace {

std::vector<float> rows_of(int count, int stride) {
  std::vector<float> rows(static_cast<size_t>(count) * stride);
  for (size_t i = 0; i < rows.size(); ++i) {
    const float scale = i % stride == 0 ? 1e-3f : 30.0f;
    rows[i] = 100.0f * (i % stride) +
              scale * random_normal(random_source(1, kStreamEvent, 0, 0), static_cast<u32>(i));
  }
  return rows;
}

TEST(Normalizer, EqualsWelfordHoweverTheRowsAreCut) {
  constexpr int kRows = 1000, kStride = 5, kColumns = 3;
  const std::vector<float> rows = rows_of(kRows, kStride);
  std::vector<double> mean(kColumns, 0.0), squares(kColumns, 0.0);
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kColumns; ++i) {
      const double x = rows[r * kStride + i];
      const double delta = x - mean[i];
      mean[i] += delta / (r + 1);
      squares[i] += delta * (x - mean[i]);
    }
  }
  for (const int chunk : {1, 7, 128, 1000}) {
    Normalizer normalizer(kColumns);
    for (int r = 0; r < kRows; r += chunk) {
      normalizer.absorb(rows.data() + r * kStride, std::min(chunk, kRows - r), kStride);
    }
    EXPECT_EQ(normalizer.count(), 1000u);
    float written_mean[kColumns], written_scale[kColumns];
    normalizer.write(written_mean, written_scale);
    for (int i = 0; i < kColumns; ++i) {
      const double variance = squares[i] / kRows;
      EXPECT_NEAR(normalizer.mean()[i], mean[i], 1e-9 * std::max(1.0, std::abs(mean[i])));
      EXPECT_NEAR(normalizer.variance()[i], variance, 1e-9 * std::max(1.0, variance));
      EXPECT_NEAR(written_mean[i], mean[i], 1e-5 * std::max(1.0, std::abs(mean[i])));
      EXPECT_NEAR(written_scale[i] * (std::sqrt(variance) + 1e-2), 1.0, 1e-6);
    }
  }
}

TEST(Normalizer, BeforeTheFirstRowItIsNearlyTheIdentity) {
  Normalizer normalizer(2);
  normalizer.absorb(nullptr, 0, 2);
  float mean[2], scale[2];
  normalizer.write(mean, scale);
  EXPECT_EQ(mean[1], 0.0f);
  EXPECT_NEAR(scale[1], 1 / 1.01, 1e-6);
}

TEST(Normalizer, ItsTensorsAreItsState) {
  StateRegistry registry;
  Normalizer normalizer(4);
  normalizer.register_state(registry, "normalizer/observation");
  ASSERT_EQ(registry.tensors().size(), 3u);
  EXPECT_EQ(registry.tensors()[0].name, "normalizer/observation/mean");
  EXPECT_EQ(registry.tensors()[1].name, "normalizer/observation/var");
  EXPECT_EQ(registry.tensors()[2].name, "normalizer/observation/count");
  EXPECT_EQ(registry.tensors()[1].bytes(), 4 * sizeof(double));
}

}  // namespace
}  // namespace millrace

// Tests for cpp/noise_repetition.cpp.
#include "noise_repetition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace millrace {
namespace {

TEST(NoiseRepetition, LengthsHaveTheFrequenciesOfZetaCutOff) {
  constexpr int kDraws = 200000, kLongest = 16;
  const NoiseRepetition noise(1, kLongest, 7);
  std::vector<int> counts(kLongest + 1);
  for (uint64_t tick = 0; tick < kDraws; ++tick) {
    const int length = noise.length(static_cast<uint32_t>(tick % 5), tick);
    ASSERT_GE(length, 1);
    ASSERT_LE(length, kLongest);
    ++counts[static_cast<size_t>(length)];
  }
  double total = 0;
  for (int k = 1; k <= kLongest; ++k) total += 1.0 / (k * k);
  for (int k = 1; k <= kLongest; ++k) {
    const double p = 1.0 / (k * k) / total;
    const double deviation = std::sqrt(kDraws * p * (1 - p));
    EXPECT_NEAR(counts[static_cast<size_t>(k)], kDraws * p, 4.5 * deviation) << k;
  }
}

TEST(NoiseRepetition, KeepsEachDrawForItsLength) {
  constexpr int kEnvs = 50;
  NoiseRepetition noise(kEnvs, 16, 7);
  int kept = 0;
  std::vector<uint64_t> since(kEnvs, 0);
  for (uint64_t tick = 0; tick < 500; ++tick) {
    noise.advance(tick);
    for (uint32_t i = 0; i < kEnvs; ++i) {
      const uint64_t drawn_at = noise.drawn_at()[i];
      EXPECT_LE(drawn_at, tick);
      EXPECT_LT(tick, drawn_at + static_cast<uint64_t>(noise.length(i, drawn_at)));
      if (drawn_at != since[i]) {
        EXPECT_EQ(drawn_at, tick);
        EXPECT_EQ(tick, since[i] + static_cast<uint64_t>(noise.length(i, since[i])));
      }
      kept += drawn_at < tick ? 1 : 0;
      since[i] = drawn_at;
    }
  }
  EXPECT_GT(kept, 0);
}

TEST(NoiseRepetition, AResetDrawsAnewAndNobodyElseDoes) {
  constexpr int kEnvs = 200;
  NoiseRepetition noise(kEnvs, 16, 7), untouched(kEnvs, 16, 7);
  noise.advance(0);
  untouched.advance(0);
  std::vector<uint8_t> mask(kEnvs, 0);
  for (int i = 0; i < kEnvs; i += 2) mask[static_cast<size_t>(i)] = 1;
  noise.restart(mask.data());
  noise.advance(1);
  untouched.advance(1);
  int kept = 0;
  for (uint32_t i = 0; i < kEnvs; ++i) {
    if (mask[i] != 0) {
      EXPECT_EQ(noise.drawn_at()[i], 1u);
    } else {
      EXPECT_EQ(noise.drawn_at()[i], untouched.drawn_at()[i]);
      kept += noise.drawn_at()[i] == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(kept, 0);
}

TEST(NoiseRepetition, LengthOneIsANewDrawEachTick) {
  NoiseRepetition noise(3, 1, 7);
  for (uint64_t tick = 0; tick < 10; ++tick) {
    noise.advance(tick);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(noise.drawn_at()[i], tick);
  }
}

TEST(NoiseRepetition, GoesOnFromACheckpoint) {
  NoiseRepetition whole(20, 16, 7), resumed(20, 16, 7);
  for (uint64_t tick = 0; tick < 9; ++tick) whole.advance(tick);
  StateRegistry from, to;
  whole.register_state(from);
  resumed.register_state(to);
  ASSERT_EQ(from.tensors().size(), to.tensors().size());
  for (size_t i = 0; i < to.tensors().size(); ++i) {
    std::memcpy(to.tensors()[i].data, from.tensors()[i].data, to.tensors()[i].bytes());
  }
  for (uint64_t tick = 9; tick < 40; ++tick) {
    whole.advance(tick);
    resumed.advance(tick);
    EXPECT_EQ(std::memcmp(whole.drawn_at(), resumed.drawn_at(), 20 * sizeof(uint64_t)), 0);
  }
}

}  // namespace
}  // namespace millrace

// Tests for cpp/philox.h.
#include "philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace millrace {
namespace {

void expect_words(Philox4 counter, u64 key, std::vector<u32> expected) {
  const Philox4 actual = philox4x32_10(counter, key);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(actual.word[i], expected[i]) << "word " << i;
}

TEST(Philox, GivesTheKnownAnswers) {
  expect_words({{0, 0, 0, 0}}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  expect_words({{~0u, ~0u, ~0u, ~0u}}, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  // The digits of pi.
  expect_words({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822ull,
               {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST(Philox, CounterHoldsDrawEnvironmentTickAndStream) {
  const u64 tick = 0x00ABCDEF12345678ull;
  const RandomSource source = random_source(7, kStreamSampler, 42, tick);
  const Philox4 block = philox4x32_10({{5, 42, 0x12345678u, (6u << 24) | 0xABCDEFu}}, 7);
  for (u32 i = 0; i < 4; ++i) EXPECT_EQ(random_u32(source, 20 + i), block.word[i]);
}

TEST(Philox, DrawsOfOneEnvironmentDoNotDependOnHowManyThereAre) {
  const auto draws_of = [](int num_envs) {
    std::vector<std::vector<float>> draws(num_envs);
    for (int env = 0; env < num_envs; ++env) {
      const RandomSource source = random_source(1, kStreamReset, static_cast<u32>(env), 3);
      for (u32 i = 0; i < 8; ++i) draws[env].push_back(random_uniform(source, i, -1.0f, 1.0f));
    }
    return draws;
  };
  const auto few = draws_of(4);
  const auto many = draws_of(64);
  for (int env = 0; env < 4; ++env) EXPECT_EQ(few[env], many[env]);
  for (int a = 0; a < 64; ++a) {
    for (int b = 0; b < a; ++b) EXPECT_NE(many[a], many[b]);
  }
}

TEST(Philox, StreamsSeedsAndTicksDiffer) {
  const u32 base = random_u32(random_source(1, kStreamCommand, 0, 0), 0);
  EXPECT_NE(base, random_u32(random_source(2, kStreamCommand, 0, 0), 0));
  EXPECT_NE(base, random_u32(random_source(1, kStreamEvent, 0, 0), 0));
  EXPECT_NE(base, random_u32(random_source(1, kStreamCommand, 0, 1), 0));
  EXPECT_NE(base, random_u32(random_source(1, kStreamCommand, 1, 0), 0));
}

TEST(Philox, UniformStaysInsideAndIndexCoversEvenly) {
  constexpr u32 kDraws = 70000;
  std::vector<int> histogram(7, 0);
  const RandomSource source = random_source(9, kStreamEvent, 0, 0);
  for (u32 i = 0; i < kDraws; ++i) {
    const float u = random_uniform(source, i, 0.0f, 1.0f);
    ASSERT_TRUE(u >= 0.0f && u < 1.0f);
    ++histogram[random_index(source, i, 7)];
  }
  for (int count : histogram) EXPECT_NEAR(count, 10000, 500);  // 5 sigma = 463
}

TEST(Philox, NormalHasTheMomentsOfANormal) {
  constexpr int kDraws = 200000;
  double sum = 0, sum2 = 0, sum3 = 0, sum4 = 0, lag = 0;
  float previous = 0;
  for (int i = 0; i < kDraws; ++i) {
    const RandomSource source = random_source(3, kStreamExploration, i / 64, 11);
    const float x = random_normal(source, static_cast<u32>(i % 64));
    ASSERT_TRUE(mr_isfinite(x));
    sum += x;
    sum2 += x * x;
    sum3 += std::pow(x, 3);
    sum4 += std::pow(x, 4);
    lag += x * previous;
    previous = x;
  }
  // Five standard errors of each moment.
  EXPECT_NEAR(sum / kDraws, 0.0, 0.012);
  EXPECT_NEAR(sum2 / kDraws, 1.0, 0.016);
  EXPECT_NEAR(sum3 / kDraws, 0.0, 0.044);
  EXPECT_NEAR(sum4 / kDraws, 3.0, 0.11);
  EXPECT_NEAR(lag / kDraws, 0.0, 0.012);
}

}  // namespace
}  // namespace millrace

// Tests for cpp/elementary.h, against libm in double.
#include "elementary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace millrace {
namespace {

constexpr double kRelative = 3e-7;

// Largest |ours - reference| / scale(reference) over an even grid of `low..high`.
double worst(float low, float high, const std::function<float(float)>& ours,
             const std::function<double(double)>& reference, bool is_relative) {
  constexpr int kPoints = 200001;
  double largest = 0;
  for (int i = 0; i < kPoints; ++i) {
    const float x = low + (high - low) * (static_cast<float>(i) / (kPoints - 1));
    const double expected = reference(x);
    const double scale = is_relative ? std::abs(expected) : 1.0;
    if (scale < 1e-37) continue;
    largest = std::max(largest, std::abs(ours(x) - expected) / scale);
  }
  return largest;
}

TEST(Elementary, ExpIsAccurateOverItsWholeRange) {
  const auto reference = [](double x) { return std::exp(x); };
  EXPECT_LT(worst(-87.0f, 88.7f, mr_exp, reference, true), kRelative);
  EXPECT_LT(worst(-1.0f, 1.0f, mr_exp, reference, true), kRelative);
  EXPECT_EQ(mr_exp(0.0f), 1.0f);
  EXPECT_EQ(mr_exp(1000.0f), std::numeric_limits<float>::infinity());
  EXPECT_EQ(mr_exp(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
  EXPECT_EQ(mr_exp(-1000.0f), 0.0f);
  EXPECT_NEAR(mr_exp(-100.0f), std::exp(-100.0), 1.5e-45);  // subnormal: one unit
}

TEST(Elementary, LogIsAccurateOverItsWholeRange) {
  const auto reference = [](double x) { return std::log(x); };
  EXPECT_LT(worst(1e-4f, 1.0f, mr_log, reference, true), kRelative);
  EXPECT_LT(worst(0.9f, 1.1f, mr_log, reference, true), kRelative);
  EXPECT_LT(worst(1.0f, 1e6f, mr_log, reference, true), kRelative);
  for (float x = 1e-44f; x < 1e38f; x *= 3.7f) {
    EXPECT_NEAR(mr_log(x), std::log(static_cast<double>(x)), 1e-5) << x;
  }
  EXPECT_EQ(mr_log(1.0f), 0.0f);
  EXPECT_EQ(mr_log(0.0f), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(mr_log(-1.0f)));
}

TEST(Elementary, SineAndCosineAreAccurate) {
  const auto sine = [](double x) { return std::sin(x); };
  const auto cosine = [](double x) { return std::cos(x); };
  for (float range : {0.8f, 6.3f, 100.0f, 8192.0f}) {
    EXPECT_LT(worst(-range, range, mr_sin, sine, false), 1.5e-7) << range;
    EXPECT_LT(worst(-range, range, mr_cos, cosine, false), 1.5e-7) << range;
  }
  EXPECT_LT(worst(-0.7f, 0.7f, mr_sin, sine, true), kRelative);
  // Near the zeros at multiples of pi/2 the reduction must not lose the small result.
  for (int k = 1; k < 64; ++k) {
    const float x = static_cast<float>(k * 1.57079632679489662);
    const double expected = k % 2 ? std::cos(x) : std::sin(x);
    const float actual = k % 2 ? mr_cos(x) : mr_sin(x);
    EXPECT_NEAR(actual / expected, 1.0, 1e-4) << k;
  }
  EXPECT_LE(std::abs(mr_sin(1e20f)), 1.0f);
}

TEST(Elementary, ArcCosineIsAccurateAndClamps) {
  const auto reference = [](double x) { return std::acos(x); };
  EXPECT_LT(worst(-1.0f, 1.0f, mr_acos, reference, true), kRelative);
  EXPECT_LT(worst(0.999f, 1.0f, mr_acos, reference, true), kRelative);
  EXPECT_EQ(mr_acos(1.0000001f), 0.0f);
  EXPECT_FLOAT_EQ(mr_acos(-1.0000001f), 3.14159265f);
}

TEST(Elementary, TanhIsAccurateAndSaturates) {
  const auto reference = [](double x) { return std::tanh(x); };
  EXPECT_LT(worst(-10.0f, 10.0f, mr_tanh, reference, true), kRelative);
  EXPECT_LT(worst(-0.7f, 0.7f, mr_tanh, reference, true), kRelative);
  EXPECT_EQ(mr_tanh(200.0f), 1.0f);
  EXPECT_EQ(mr_tanh(-200.0f), -1.0f);
}

TEST(Elementary, FloorAndFmodAreExact) {
  for (float x : {-3.5f, -3.0f, -0.25f, 0.0f, 0.25f, 2.9999998f, 8388607.5f, 1e9f, -1e9f}) {
    EXPECT_EQ(mr_floor(x), std::floor(x)) << x;
  }
  for (float x : {-100.3f, -6.2831855f, -1e-3f, 0.0f, 3.0f, 6.2831855f, 77.7f, 1e8f, 3e38f}) {
    for (float y : {6.2831853f, 0.1f, -2.5f, 3e-40f}) {
      EXPECT_EQ(mr_fmod(x, y), std::fmod(x, y)) << x << " mod " << y;
    }
  }
  EXPECT_TRUE(std::isnan(mr_fmod(1.0f, 0.0f)));
}

TEST(Elementary, NotANumberPassesThroughEverything) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (float value : {mr_exp(nan), mr_log(nan), mr_sin(nan), mr_cos(nan), mr_acos(nan),
                      mr_tanh(nan), mr_sqrt(nan), mr_floor(nan), mr_fmod(nan, 1.0f)}) {
    EXPECT_TRUE(std::isnan(value));
  }
  EXPECT_FALSE(mr_isfinite(nan));
  EXPECT_FALSE(mr_isfinite(-std::numeric_limits<float>::infinity()));
  EXPECT_TRUE(mr_isfinite(-3e38f));
}

}  // namespace
}  // namespace millrace

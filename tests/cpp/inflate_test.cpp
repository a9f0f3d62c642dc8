// Tests for inflate.h: streams made by zlib, whole and damaged.
#include "inflate.h"

#include <gtest/gtest.h>

#include <string>

#include "hex_bytes.h"
#include "status.h"

namespace millrace {
namespace {

using Bytes = std::vector<uint8_t>;

// zlib's raw deflate of "left foot right foot " x 12, with fixed codes.
constexpr const char* kFixed = "cb494d2b5148cbcf2f5128ca4ccf80327346862000";
// Of dynamic_text(), with codes of its own.
constexpr const char* kDynamic =
    "edccdb09c0200c00c08ee40b515010375113820105c9fed0efce506f80531de31919244df27355d8e6b0eb4d"
    "2397b1adac401496d83d0aa36eddf1311bea9a9e6612c8e344ecea2637f926cff53b2f";
// Of "stored", not compressed.
constexpr const char* kStored = "010600f9ff73746f726564";

Bytes fixed_text() {
  Bytes text;
  for (int i = 0; i < 12; ++i) {
    for (const char c : std::string("left foot right foot ")) {
      text.push_back(static_cast<uint8_t>(c));
    }
  }
  return text;
}

Bytes dynamic_text() {
  Bytes text;
  for (int i = 0; i < 600; ++i) {
    text.push_back(static_cast<uint8_t>(i * i % 23 + (i % 3 ? 97 : 48)));
  }
  text.resize(1100, 0);
  return text;
}

Bytes inflated(const Bytes& stream, size_t bytes) {
  return inflate(stream.data(), stream.size(), bytes);
}

TEST(Inflate, ReadsEveryKindOfBlock) {
  EXPECT_EQ(inflated(from_hex(kFixed), 252), fixed_text());
  EXPECT_EQ(inflated(from_hex(kDynamic), 1100), dynamic_text());
  const Bytes stored = inflated(from_hex(kStored), 6);
  EXPECT_EQ(std::string(stored.begin(), stored.end()), "stored");
}

TEST(Inflate, TheSizeMustBeTheOneThatWasSaid) {
  for (const size_t bytes : {251u, 253u, 0u}) {
    EXPECT_THROW(inflated(from_hex(kFixed), bytes), Failure) << bytes;
  }
}

TEST(Inflate, EveryTruncationIsRefused) {
  for (const char* text : {kFixed, kDynamic, kStored}) {
    const Bytes whole = from_hex(text);
    for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
      const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
      EXPECT_THROW(inflated(part, text == kFixed ? 252 : text == kStored ? 6 : 1100), Failure);
    }
  }
}

// Whatever a flipped bit makes of a stream, it ends with an error or with the right size.
TEST(Inflate, SurvivesDamage) {
  const Bytes whole = from_hex(kDynamic);
  int refused = 0;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes damaged = whole;
    damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ (1u << bit % 8));
    try {
      EXPECT_EQ(inflated(damaged, 1100).size(), 1100u);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Code::kInvalid);
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace millrace

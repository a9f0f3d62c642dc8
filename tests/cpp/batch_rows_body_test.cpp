// Tests for cpp/batch_rows_body.h: a team of any size computes what batch_rows.cpp does.
#include "batch_rows_body.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lane_team.h"

namespace millrace {
namespace {

TEST(BatchRowsBody, MirrorsThenNormalises) {
  constexpr int kWidth = 3;
  const float row[kWidth] = {1, 2, 4};
  const int source[kWidth] = {2, 1, 0};
  const float sign[kWidth] = {1, -1, 1}, mean[kWidth] = {1, 0, 3}, scale[kWidth] = {10, 1, 1};
  const UnpackMaps all = {source, sign, mean, scale}, plain = {nullptr, nullptr, nullptr, nullptr};
  for (const int lanes : {1, 2, 8}) {
    std::vector<float> target(kWidth);
    const auto unpack = [&](bool is_mirrored, const UnpackMaps& maps) {
      run_team(lanes, [&](const LaneTeam& team) {
        unpack_row(team, row, is_mirrored, maps, target.data(), kWidth);
      });
      return target;
    };
    EXPECT_EQ(unpack(false, plain), (std::vector<float>{1, 2, 4}));
    EXPECT_EQ(unpack(false, all), (std::vector<float>{0, 2, 1}));
    EXPECT_EQ(unpack(true, all), (std::vector<float>{30, -2, -2}));
  }
}

TEST(BatchRowsBody, ReachesTheEndOfALongRow) {
  constexpr int kWidth = 11;  // more than one lane or two read at once, and no multiple of it
  std::vector<float> row(kWidth), target(kWidth);
  for (int i = 0; i < kWidth; ++i) row[static_cast<size_t>(i)] = static_cast<float>(i + 1);
  const UnpackMaps plain = {nullptr, nullptr, nullptr, nullptr};
  for (const int lanes : {1, 2, 8}) {
    std::fill(target.begin(), target.end(), 0.0f);
    run_team(lanes, [&](const LaneTeam& team) {
      unpack_row(team, row.data(), false, plain, target.data(), kWidth);
    });
    EXPECT_EQ(target, row) << lanes;
  }
}

}  // namespace
}  // namespace millrace

// Tests for cpp/batch_rows_body.h: a team of any size computes what batch_rows.cpp does.
#include "batch_rows_body.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace millrace

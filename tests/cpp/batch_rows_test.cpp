// Tests for cpp/batch_rows.cpp.
#include "batch_rows.h"

#include <gtest/gtest.h>

#include <vector>

namespace millrace {
namespace {

TEST(Unpack, MirrorsThenNormalisesEachPart) {
  Workspace workspace;
  UnpackPart pair{};
  pair.column = 1;
  pair.width = 2;
  pair.target = workspace.add_floats("target", 4 * 4);
  pair.target_stride = 4;
  pair.mirror_source = workspace.add("source", DType::kI32, 3);
  pair.mirror_sign = workspace.add_floats("sign", 3);
  pair.mean = workspace.add_floats("mean", 2);
  pair.scale = workspace.add_floats("scale", 2);
  UnpackPart single{};
  single.column = 3;
  single.width = 1;
  single.target = pair.target + 3;
  single.target_stride = 4;
  single.mirror_source = pair.mirror_source + 2;
  single.mirror_sign = pair.mirror_sign + 2;
  workspace.allocate();
  workspace.integers(pair.mirror_source)[0] = 1;  // (a, b) -> (b, -a)
  workspace.floats(pair.mirror_sign)[0] = 1.0f;
  workspace.floats(pair.mirror_sign)[1] = -1.0f;
  workspace.floats(single.mirror_sign)[0] = -1.0f;
  workspace.floats(pair.mean)[0] = 10.0f;
  workspace.floats(pair.scale)[0] = 2.0f;
  workspace.floats(pair.scale)[1] = 1.0f;
  const float rows[2][4] = {{9, 3, 4, 7}, {9, 5, 6, 8}};
  Arguments arguments{};
  arguments.rows = rows[0];
  arguments.row_stride = 4;
  execute(UnpackOp{4, 2, {pair, single}}, CpuFrame{workspace, arguments});
  const float* t = workspace.floats(pair.target);
  const std::vector<float> expected = {(3 - 10) * 2, 4,  0, 7,   // 0: between the parts
                                       (5 - 10) * 2, 6,  0, 8,   //
                                       (4 - 10) * 2, -3, 0, -7,  //
                                       (6 - 10) * 2, -5, 0, -8};
  EXPECT_EQ(std::vector<float>(t, t + 16), expected);
}

}  // namespace
}  // namespace millrace

// Tests for cpp/batch_rows.cpp.
#include "batch_rows.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Unpack, MirrorsThenNormalises) {
  Workspace workspace;
  UnpackOp op{};
  op.rows = 4;
  op.source_rows = 2;
  op.column = 1;
  op.width = 2;
  op.target = workspace.add_floats("target", 4 * 3);
  op.target_stride = 3;
  op.mirror_source = workspace.add("source", DType::kI32, 2);
  op.mirror_sign = workspace.add_floats("sign", 2);
  op.mean = workspace.add_floats("mean", 2);
  op.scale = workspace.add_floats("scale", 2);
  workspace.allocate();
  workspace.integers(op.mirror_source)[0] = 1;  // (a, b) -> (b, -a)
  workspace.floats(op.mirror_sign)[0] = 1.0f;
  workspace.floats(op.mirror_sign)[1] = -1.0f;
  workspace.floats(op.mean)[0] = 10.0f;
  workspace.floats(op.scale)[0] = 2.0f;
  workspace.floats(op.scale)[1] = 1.0f;
  const float rows[2][4] = {{9, 3, 4, 9}, {9, 5, 6, 9}};
  Arguments arguments{};
  arguments.rows = rows[0];
  arguments.row_stride = 4;
  execute(op, CpuFrame{workspace, arguments});
  const float* t = workspace.floats(op.target);
  EXPECT_EQ(t[0], (3 - 10) * 2);
  EXPECT_EQ(t[1], 4);
  EXPECT_EQ(t[2], 0);  // between the strides
  EXPECT_EQ(t[3], (5 - 10) * 2);
  EXPECT_EQ(t[6], (4 - 10) * 2);
  EXPECT_EQ(t[7], -3);
  EXPECT_EQ(t[9], (6 - 10) * 2);
  EXPECT_EQ(t[10], -5);
}

}  // namespace
}  // namespace millrace

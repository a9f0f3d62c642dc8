// Tests for cpp/gemm.cpp.
#include "gemm.h"

#include <gtest/gtest.h>

#include "philox.h"

namespace millrace {
namespace {

// Two products with strides and distances wider than the matrices, against a plain loop.
TEST(Gemm, EqualsAPlainLoopForEveryTransposition) {
  constexpr int kM = 7, kN = 5, kK = 9, kStride = 12;
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      Workspace workspace;
      GemmOp op{};
      op.transpose_a = transpose_a;
      op.transpose_b = transpose_b;
      op.m = kM;
      op.n = kN;
      op.k = kK;
      op.a = workspace.add_floats("a", 400);
      op.b = workspace.add_floats("b", 400);
      op.c = workspace.add_floats("c", 400);
      op.a_stride = op.b_stride = op.c_stride = kStride;
      op.a_distance = op.b_distance = op.c_distance = 200;
      op.count = 2;
      workspace.allocate();
      for (u32 i = 0; i < 400; ++i) {
        workspace.floats(op.a)[i] = random_normal(random_source(1, kStreamEvent, 0, 0), i);
        workspace.floats(op.b)[i] = random_normal(random_source(1, kStreamEvent, 1, 0), i);
      }
      execute(op, CpuFrame{workspace, Arguments{}});
      for (int p = 0; p < 2; ++p) {
        const float *a = workspace.floats(op.a) + p * 200, *b = workspace.floats(op.b) + p * 200;
        for (int i = 0; i < kM; ++i) {
          for (int j = 0; j < kN; ++j) {
            double sum = 0;
            for (int k = 0; k < kK; ++k) {
              sum += double{transpose_a ? a[k * kStride + i] : a[i * kStride + k]} *
                     (transpose_b ? b[j * kStride + k] : b[k * kStride + j]);
            }
            ASSERT_NEAR(workspace.floats(op.c)[p * 200 + i * kStride + j], sum, 1e-5);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace millrace

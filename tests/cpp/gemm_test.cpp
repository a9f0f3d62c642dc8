// Tests for cpp/gemm.cpp.
#include "gemm.h"

#include <gtest/gtest.h>

#include <cmath>

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

// Two products side by side, two rows of two columns each; a holds 1 in one column of each row.
struct SmallProducts {
  SmallProducts() {
    op.m = op.n = op.k = 2;
    op.a = workspace.add_floats("a", 8);
    op.b = workspace.add_floats("b", 8);
    op.c = workspace.add_floats("c", 8);
    op.a_stride = op.c_stride = 4;
    op.b_stride = 2;
    op.a_distance = op.c_distance = 2;
    op.b_distance = 4;
    op.count = 2;
    bias = workspace.add_floats("bias", 4);
    workspace.allocate();
    set(op.a, {1, 0, 0, 1, 0, 1, 1, 0});
    set(op.b, {1, -2, 3, -4, 5, -6, 7, -8});
  }
  void set(Operand operand, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), workspace.floats(operand));
  }
  std::vector<float> get(Operand operand, int count) const {
    return {workspace.floats(operand), workspace.floats(operand) + count};
  }

  Workspace workspace;
  GemmOp op{};
  Operand bias;
};

TEST(Gemm, AddsTheBiasOfEachProductAndCutsWhatIsNegative) {
  SmallProducts products;
  products.op.bias = products.bias;
  products.set(products.bias, {10, 1, 100, 6.5f});
  execute(products.op, CpuFrame{products.workspace, Arguments{}});
  EXPECT_EQ(products.get(products.op.c, 8),
            (std::vector<float>{11, -1, 107, -1.5f, 13, -3, 105, 0.5f}));
  products.op.has_relu = true;
  execute(products.op, CpuFrame{products.workspace, Arguments{}});
  EXPECT_EQ(products.get(products.op.c, 8), (std::vector<float>{11, 0, 107, 0, 13, 0, 105, 0.5f}));
}

TEST(Gemm, WhatIsNotANumberPassesTheRelu) {
  SmallProducts products;
  products.op.has_relu = true;
  products.workspace.floats(products.op.a)[0] = NAN;
  execute(products.op, CpuFrame{products.workspace, Arguments{}});
  EXPECT_TRUE(std::isnan(products.get(products.op.c, 1)[0]));
}

TEST(Gemm, AnAccumulatingProductHasNoBias) {
  SmallProducts products;
  Program program("refused", products.workspace);
  products.op.bias = products.bias;
  products.op.accumulates = true;
  EXPECT_THROW(program.record(products.op), Failure);
}

}  // namespace
}  // namespace millrace

#include "gemm.h"

#include <cblas.h>

#include "lanes.h"

namespace millrace {
namespace {

MR_CLONES void add_bias(const float* __restrict bias, float* __restrict row, int width) {
  for (int i = 0; i < width; ++i) row[i] += bias[i];
}

MR_CLONES void relu_row(float* values, int width) {
  for (int i = 0; i < width; ++i) values[i] = values[i] < 0.0f ? 0.0f : values[i];
}

void finish_rows(const GemmOp& op, const float* bias, float* c) {
  for (int r = 0; r < op.m; ++r) {
    float* row = c + static_cast<size_t>(r) * op.c_stride;
    if (bias != nullptr) add_bias(bias, row, op.n);
    if (op.has_relu) relu_row(row, op.n);
  }
}

}  // namespace

void execute(const GemmOp& op, const CpuFrame& frame) {
  for (int i = 0; i < op.count; ++i) {
    float* c = frame.floats(op.c + i * op.c_distance);
    cblas_sgemm(CblasRowMajor, op.transpose_a ? CblasTrans : CblasNoTrans,
                op.transpose_b ? CblasTrans : CblasNoTrans, op.m, op.n, op.k, 1.0f,
                frame.source(op.a + i * op.a_distance), op.a_stride,
                frame.source(op.b + i * op.b_distance), op.b_stride, op.accumulates ? 1.0f : 0.0f,
                c, op.c_stride);
    if (op.bias.used() || op.has_relu) {
      finish_rows(op, op.bias.used() ? frame.floats(op.bias + i * op.n) : nullptr, c);
    }
  }
}

}  // namespace millrace

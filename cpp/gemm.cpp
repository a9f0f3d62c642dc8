#include "gemm.h"

#include <cblas.h>

namespace millrace {

void execute(const GemmOp& op, const CpuFrame& frame) {
  for (int i = 0; i < op.count; ++i) {
    cblas_sgemm(CblasRowMajor, op.transpose_a ? CblasTrans : CblasNoTrans,
                op.transpose_b ? CblasTrans : CblasNoTrans, op.m, op.n, op.k, 1.0f,
                frame.source(op.a + i * op.a_distance), op.a_stride,
                frame.source(op.b + i * op.b_distance), op.b_stride, op.accumulates ? 1.0f : 0.0f,
                frame.floats(op.c + i * op.c_distance), op.c_stride);
  }
}

}  // namespace millrace

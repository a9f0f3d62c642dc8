// Scalars of one update join the totals of an interval: one thread each.
#include "elementary.h"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"

namespace millrace {
namespace {

constexpr int kMaxScalars = 32;

struct Statistics {
  int count;
  Fold folds[kMaxScalars];
  const float *scalars, *finite;
  float* totals;
};

__global__ void __launch_bounds__(kMaxScalars) fold_scalars(const Statistics op) {
  wait_for_kernels_before();
  const int i = static_cast<int>(threadIdx.x);
  const bool is_finite = *op.finite == 1.0f;
  if (i == 0) op.totals[op.count + (is_finite ? 0 : 1)] += 1.0f;
  if (i >= op.count || !is_finite) return;
  const float value = op.scalars[i], total = op.totals[i];
  op.totals[i] = op.folds[i] == Fold::kSum   ? total + value
                 : op.folds[i] == Fold::kMax ? mr_max(value, total)
                                             : mr_min(value, total);
}

}  // namespace

cudaError_t launch_op(const CudaFrame& frame, const StatisticsOp& op) {
  if (op.folds.size() > kMaxScalars) return cudaErrorInvalidValue;
  Statistics statistics{};
  statistics.count = static_cast<int>(op.folds.size());
  for (int i = 0; i < statistics.count; ++i) {
    statistics.folds[i] = op.folds[static_cast<size_t>(i)];
  }
  statistics.scalars = frame.floats(op.scalars);
  statistics.finite = frame.floats(op.finite);
  statistics.totals = frame.floats(op.totals);
  return launch_kernel(frame.stream, 1, kMaxScalars, 0, fold_scalars, statistics);
}

}  // namespace millrace

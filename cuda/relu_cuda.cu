// Gradients through ReLU layers. A block owns a few columns of all rows, so that it adds their
// gradients up by itself, in an order that depends on the shapes alone.
#include <type_traits>

#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kVector = 8;  // columns of a block: one sector of memory, or two, in every row
constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / kWarp;

// Of all rows that the block's threads have, to the first kColumns threads: column i to thread i.
template <int kColumns>
__device__ float sums_of_columns(const float (&own)[kColumns]) {
  __shared__ float room[kWarps][kColumns];
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    const float sum = warp_sum(own[i]);
    if (threadIdx.x % kWarp == 0) room[threadIdx.x / kWarp][i] = sum;
  }
  __syncthreads();
  float sum = 0.0f;
  if (threadIdx.x < kColumns) {
    for (int warp = 0; warp < kWarps; ++warp) sum += room[warp][threadIdx.x];
  }
  return sum;
}

// A block has kColumns columns of all rows, a thread those of every kThreads-th row. With sums:
// those of the gradient's columns.
template <int kColumns, class Stored>
__global__ void __launch_bounds__(kThreads)
    relu_backward(Stored* gradient, const Stored* output, int rows, int width, float* sums) {
  wait_for_kernels_before();
  using Pack = Packed<Stored, kColumns>;
  const int column = static_cast<int>(blockIdx.x) * kColumns;
  float own[kColumns] = {};
  for (int r = static_cast<int>(threadIdx.x); r < rows; r += kThreads) {
    const u64 at = static_cast<u64>(r) * width + column;
    const Pack kept = *reinterpret_cast<const Pack*>(output + at);
    Pack passed = *reinterpret_cast<const Pack*>(gradient + at);
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      if (!(to_float(kept.values[i]) > 0.0f)) passed.values[i] = static_cast<Stored>(0.0f);
      own[i] += to_float(passed.values[i]);
    }
    *reinterpret_cast<Pack*>(gradient + at) = passed;
  }
  if (sums == nullptr) return;
  const float sum = sums_of_columns(own);
  if (threadIdx.x < kColumns) sums[column + threadIdx.x] = sum;
}

}  // namespace

cudaError_t launch_op(const CudaFrame& frame, const ReluBackwardOp& op) {
  return with_stored(frame, op.gradient, [&](auto* gradient) {
    using Stored = std::remove_pointer_t<decltype(gradient)>;
    const Stored* const output = frame.at<Stored>(op.output);
    const bool is_wide = op.width % kVector == 0 &&
                         are_aligned({gradient, output}, alignof(Packed<Stored, kVector>));
    return launch_kernel(frame.stream,
                         static_cast<unsigned>(is_wide ? op.width / kVector : op.width), kThreads,
                         0, is_wide ? relu_backward<kVector, Stored> : relu_backward<1, Stored>,
                         gradient, output, op.rows, op.width, frame.floats(op.bias_gradient));
  });
}

}  // namespace millrace

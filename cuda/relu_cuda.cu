// ReLU layers beside their products. A block of the backward kernel owns a few columns of all rows,
// so that it adds their gradients up by itself, in an order that depends on the shapes alone.
#include <type_traits>

#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kForwardThreads = 256;
constexpr int kColumns = 8;  // of a block: one sector of memory in every row
constexpr int kBackwardThreads = 1024;
constexpr int kRowLanes = kBackwardThreads / kColumns;
constexpr int kWarps = kBackwardThreads / kWarp;

// x + bias, where that is not negative; what is not a number stays one.
template <class Stored>
__global__ void __launch_bounds__(kForwardThreads)
    relu_forward(Stored* values, const float* bias, u64 count, int width) {
  wait_for_kernels_before();
  const u64 i = static_cast<u64>(blockIdx.x) * kForwardThreads + threadIdx.x;
  if (i >= count) return;
  const float x = to_float(values[i]) + bias[i % static_cast<u64>(width)];
  values[i] = static_cast<Stored>(x < 0.0f ? 0.0f : x);
}

// Of all rows that the block's lanes have, to the first kColumns threads.
__device__ float sum_of_column(float sum) {
  __shared__ float room[kWarps][kColumns];
  const int own = static_cast<int>(threadIdx.x) % kColumns;
#pragma unroll
  for (int distance = kWarp / 2; distance >= kColumns; distance /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  }
  if (threadIdx.x % kWarp < kColumns) room[threadIdx.x / kWarp][own] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int warp = 0; warp < kWarps; ++warp) sum += room[warp][own];
  return sum;
}

// With sums: those of the gradient's columns.
template <class Stored>
__global__ void __launch_bounds__(kBackwardThreads)
    relu_backward(Stored* gradient, const Stored* output, int rows, int width, float* sums) {
  wait_for_kernels_before();
  const int column =
      static_cast<int>(blockIdx.x) * kColumns + static_cast<int>(threadIdx.x) % kColumns;
  const bool is_there = column < width;
  float sum = 0.0f;
  if (is_there) {
#pragma unroll 4
    for (int r = static_cast<int>(threadIdx.x) / kColumns; r < rows; r += kRowLanes) {
      const u64 at = static_cast<u64>(r) * width + column;
      const float passed = to_float(output[at]) > 0.0f ? to_float(gradient[at]) : 0.0f;
      gradient[at] = static_cast<Stored>(passed);
      sum += passed;
    }
  }
  if (sums == nullptr) return;
  sum = sum_of_column(sum);
  if (is_there && threadIdx.x < kColumns) sums[column] = sum;
}

}  // namespace

cudaError_t launch_op(const CudaFrame& frame, const ReluForwardOp& op) {
  const u64 count = static_cast<u64>(op.rows) * op.width;
  return with_stored(frame, op.values, [&](auto* values) {
    using Stored = std::remove_pointer_t<decltype(values)>;
    return launch_kernel(frame.stream, blocks_for(count, kForwardThreads), kForwardThreads, 0,
                         relu_forward<Stored>, values, frame.floats(op.bias), count, op.width);
  });
}

cudaError_t launch_op(const CudaFrame& frame, const ReluBackwardOp& op) {
  const unsigned blocks = blocks_for(static_cast<u64>(op.width), kColumns);
  return with_stored(frame, op.gradient, [&](auto* gradient) {
    using Stored = std::remove_pointer_t<decltype(gradient)>;
    return launch_kernel(frame.stream, blocks, kBackwardThreads, 0, relu_backward<Stored>, gradient,
                         frame.at<Stored>(op.output), op.rows, op.width,
                         frame.floats(op.bias_gradient));
  });
}

}  // namespace millrace

// Gradients through ReLU layers: a thread has a vector of them.
#include <type_traits>

#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "stored.cuh"

namespace millrace {
namespace {

constexpr int kVectorBytes = 16;
constexpr int kThreads = 256;

// `count` in vectors.
template <int kVector, class Stored>
__global__ void __launch_bounds__(kThreads)
    relu_backward(Stored* gradient, const Stored* output, u64 count) {
  wait_for_kernels_before();
  using Pack = Packed<Stored, kVector>;
  const u64 i = static_cast<u64>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const Pack kept = reinterpret_cast<const Pack*>(output)[i];
  Pack passed = reinterpret_cast<const Pack*>(gradient)[i];
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    if (!(to_float(kept.values[j]) > 0.0f)) passed.values[j] = static_cast<Stored>(0.0f);
  }
  reinterpret_cast<Pack*>(gradient)[i] = passed;
}

}  // namespace

cudaError_t launch_op(const CudaFrame& frame, const ReluBackwardOp& op) {
  return with_stored(frame, op.gradient, [&](auto* gradient) {
    using Stored = std::remove_pointer_t<decltype(gradient)>;
    constexpr int kVector = kVectorBytes / sizeof(Stored);
    const Stored* const output = frame.at<Stored>(op.output);
    const u64 values = static_cast<u64>(op.rows) * static_cast<u64>(op.width);
    const bool is_wide = values % kVector == 0 && are_aligned({gradient, output}, kVectorBytes);
    const u64 count = is_wide ? values / kVector : values;
    return launch_kernel(frame.stream, blocks_for(count, kThreads), kThreads, 0,
                         is_wide ? relu_backward<kVector, Stored> : relu_backward<1, Stored>,
                         gradient, output, count);
  });
}

}  // namespace millrace

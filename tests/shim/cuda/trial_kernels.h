// Kernels for the tests of the shim of CUDA's runtime, most of them with a mistake; the results are
// cudaLaunchKernelEx's.
#pragma once

#include <cuda_runtime.h>

namespace device_shim {

constexpr unsigned kTrialThreads = 96;

// Each block reverses its kTrialThreads values through shared memory.
cudaError_t launch_reverse(float* values, unsigned blocks, bool has_barrier);
// A barrier that only the first `threads` of a block reach.
cudaError_t launch_barrier_of_some(unsigned threads);
// found[block][which]: what a thread finds in shared memory before anyone writes there, static and
// dynamic; then it writes there.
cudaError_t launch_find_in_shared(float* found, unsigned blocks);
// Dynamic shared memory of that size, after asking for as much as `asked`.
cudaError_t launch_with_shared(size_t bytes, int asked);

}  // namespace device_shim

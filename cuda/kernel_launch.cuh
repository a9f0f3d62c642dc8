// One launch of a kernel, checked against what the kernel takes.
#pragma once

#include <cuda_runtime.h>

#include <utility>

namespace millrace {

constexpr size_t kSharedWithoutAsking = 48 << 10;

// Enqueues; the result says whether the launch was accepted. An empty grid is nothing to do.
template <class... Parameters, class... Arguments>
cudaError_t launch_kernel(cudaStream_t stream, dim3 grid, unsigned threads, size_t shared_bytes,
                          void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return cudaSuccess;
  if (shared_bytes > kSharedWithoutAsking) {
    const cudaError_t code = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (code != cudaSuccess) return code;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

constexpr unsigned blocks_for(unsigned long long items, unsigned items_of_a_block) {
  return static_cast<unsigned>((items + items_of_a_block - 1) / items_of_a_block);
}

}  // namespace millrace

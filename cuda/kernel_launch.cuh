// One launch of a kernel, checked against what the kernel takes. Where the device can, a kernel
// starts while the one before it on its stream still runs, and waits there for its end: what it
// costs to start a kernel is then hidden. So every kernel that launch_kernel() launches begins with
// wait_for_kernels_before(); tools/check looks for it.
#pragma once

#include <cuda_runtime.h>

#include <utility>

namespace millrace {

constexpr size_t kSharedWithoutAsking = 48 << 10;
constexpr int kOldestMajorThatOverlaps = 9;

// Until all that the stream was given before this kernel is done and can be seen; the next kernel
// may start to wait likewise. First in the kernel, before it looks at memory.
__device__ inline void wait_for_kernels_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Whether kernels of this process' device may start early.
inline bool kernels_overlap() {
  static const bool answer = [] {
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
               cudaSuccess &&
           major >= kOldestMajorThatOverlaps;
  }();
  return answer;
}

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
  cudaLaunchAttribute overlaps{};
  overlaps.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlaps.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &overlaps;
  config.numAttrs = kernels_overlap() ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

constexpr unsigned blocks_for(unsigned long long items, unsigned items_of_a_block) {
  return static_cast<unsigned>((items + items_of_a_block - 1) / items_of_a_block);
}

}  // namespace millrace

#include "trial_kernels.h"

namespace device_shim {
namespace {

__global__ void __launch_bounds__(kTrialThreads) reverse(float* values, bool has_barrier) {
  __shared__ float room[kTrialThreads];
  values += blockIdx.x * kTrialThreads;
  room[threadIdx.x] = values[threadIdx.x];
  if (has_barrier) __syncthreads();
  values[threadIdx.x] = room[kTrialThreads - 1 - threadIdx.x];
}

__global__ void barrier_of_some(unsigned threads) {
  if (threadIdx.x < threads) __syncthreads();
}

__global__ void find_in_shared(float* found) {
  extern __shared__ float4 dynamic[];
  __shared__ float fixed[2];
  if (threadIdx.x != 0) return;
  found[2 * blockIdx.x] = fixed[1];
  found[2 * blockIdx.x + 1] = dynamic[0].w;
  fixed[1] = dynamic[0].w = 1.0f;
}

__global__ void do_nothing() {}

cudaLaunchConfig_t config_of(unsigned blocks, unsigned threads, size_t shared_bytes = 0) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  return config;
}

}  // namespace

cudaError_t launch_reverse(float* values, unsigned blocks, bool has_barrier) {
  const cudaLaunchConfig_t config = config_of(blocks, kTrialThreads);
  return cudaLaunchKernelEx(&config, reverse, values, has_barrier);
}

cudaError_t launch_barrier_of_some(unsigned threads) {
  const cudaLaunchConfig_t config = config_of(1, kTrialThreads);
  return cudaLaunchKernelEx(&config, barrier_of_some, threads);
}

cudaError_t launch_find_in_shared(float* found, unsigned blocks) {
  const cudaLaunchConfig_t config = config_of(blocks, kTrialThreads, sizeof(float4));
  return cudaLaunchKernelEx(&config, find_in_shared, found);
}

cudaError_t launch_with_shared(size_t bytes, int asked) {
  cudaFuncSetAttribute(do_nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, asked);
  const cudaLaunchConfig_t config = config_of(1, kTrialThreads, bytes);
  return cudaLaunchKernelEx(&config, do_nothing);
}

}  // namespace device_shim

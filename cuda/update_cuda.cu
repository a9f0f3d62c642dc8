#include "update_cuda.cuh"

namespace millrace {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 128;
// Resident at once on a multiprocessor: 32 robots, so that 4,096 fit the card in one wave. Costs a
// few spilled registers, and was the faster choice: bench update.
constexpr int kResidentBlocks = 8;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// A warp as the team of one environment.
struct WarpTeam {
  __device__ int lane() const { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ int size() const { return kWarp; }
  __device__ bool leads() const { return lane() == 0; }
  __device__ void sync() const { __syncwarp(); }
  __device__ int minimum(int value) const { return __reduce_min_sync(kAllLanes, value); }
};

__global__ void __launch_bounds__(kThreads, kResidentBlocks)
    update_environments(const UpdateLaunch launch) {
  const int env = static_cast<int>((blockIdx.x * kThreads + threadIdx.x) / kWarp);
  if (env >= launch.num_envs) return;  // whole warps
  update_robot(WarpTeam(), launch, env);
}

}  // namespace

cudaError_t launch_update(cudaStream_t stream, const UpdateLaunch& launch) {
  if (launch.num_envs == 0) return cudaSuccess;
  cudaLaunchConfig_t config{};
  const unsigned threads = static_cast<unsigned>(launch.num_envs) * kWarp;
  config.gridDim = dim3((threads + kThreads - 1) / kThreads);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, update_environments, launch);
}

}  // namespace millrace

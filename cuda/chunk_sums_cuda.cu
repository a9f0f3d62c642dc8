#include "chunk_sums_cuda.cuh"
#include "kernel_launch.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kThreads = 1024;
constexpr int kColumns = kWarp;  // of a block
constexpr int kLanes = kThreads / kColumns;

// Block (columns, which): a warp reads kColumns columns of every kLanes-th chunk.
__global__ void __launch_bounds__(kThreads) add_chunks(const __grid_constant__ ChunkSums op) {
  wait_for_kernels_before();
  __shared__ float room[kLanes][kColumns];
  const int lane = static_cast<int>(threadIdx.x) / kColumns;
  const int column = static_cast<int>(threadIdx.x) % kColumns;
  const u64 i = static_cast<u64>(blockIdx.x) * kColumns + column;
  const u64 distance = gridDim.y * op.width;
  float sum = 0.0f;
  if (i < op.width) {
    const float* partial = op.partial + blockIdx.y * op.width + i;
#pragma unroll 8
    for (int chunk = lane; chunk < op.chunks; chunk += kLanes) sum += partial[chunk * distance];
  }
  room[lane][column] = sum;
  __syncthreads();
  if (lane != 0 || i >= op.width) return;
  for (int other = 1; other < kLanes; ++other) sum += room[other][column];
  op.sums[blockIdx.y][i] = sum;
}

}  // namespace

cudaError_t launch_add_chunks(cudaStream_t stream, const ChunkSums& op) {
  return launch_kernel(stream,
                       dim3(blocks_for(op.width, kColumns), static_cast<unsigned>(op.count)),
                       kThreads, 0, add_chunks, op);
}

}  // namespace millrace

// Scalars over all rows of an op: each block leaves its part in scratch, then one block adds the
// parts up. The number of parts is fixed, so the order of a sum depends on the shapes alone.
// (Letting the last block to arrive add them up was measured, and slower: every block waits for its
// writes.)
#pragma once

#include <cuda_runtime.h>

#include "program_cuda.cuh"
#include "warp_team.cuh"

namespace millrace {

constexpr int kParts = 1024;  // also the threads of the block that adds them up
constexpr int kPartThreads = 128;
constexpr int kPartWarps = kPartThreads / kWarp;

// The warp's place among all warps of a launch of kParts blocks: rows go round robin.
__device__ inline int first_row_of_warp() {
  return static_cast<int>(blockIdx.x) * kPartWarps + static_cast<int>(threadIdx.x) / kWarp;
}
constexpr int kRowsBetween = kParts * kPartWarps;

// Of one value per part, to thread 0 of a block of any size.
__device__ inline float sum_of_parts(const float* parts, float* room, int count = kParts) {
  float sum = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    sum += parts[i];
  }
  sum = block_sum(sum, room);
  __syncthreads();
  return sum;
}

// Of a block of kParts threads: each warp's values, to the lanes of the first warp, one warp a
// lane. All at once: an op that needs the gradient waits for the block that adds parts up, too.
template <int kCount>
__device__ void gather_from_warps(float (&of_warps)[kCount], float (&room)[kCount][kWarp]) {
  static_assert(kParts == kWarp * kWarp, "a warp a lane");
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if (lane == 0) room[i][warp] = of_warps[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kCount; ++i) of_warps[i] = room[i][lane];
}

}  // namespace millrace

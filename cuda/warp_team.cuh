// A warp as the team of one row (team.h), and the sum of a block in an order that never varies.
#pragma once

#include <cuda_runtime.h>

namespace millrace {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// Both give every lane the same bits: partners exchange, so each pair computes one value.
__device__ inline float warp_sum(float value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

__device__ inline float warp_maximum(float value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, value, distance);
    value = other > value ? other : value;
  }
  return value;
}

struct WarpTeam {
  __device__ int lane() const { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ int size() const { return kWarp; }
  __device__ bool leads() const { return lane() == 0; }
  __device__ void sync() const { __syncwarp(); }
  __device__ float maximum(float value) const { return warp_maximum(value); }
  __device__ float sum(float value) const { return warp_sum(value); }
  __device__ void add(unsigned* to, unsigned value) const { atomicAdd(to, value); }
};

// Of all threads of the block, to thread 0. Every thread calls it; `room` holds one value per warp
// and is free again after the next __syncthreads().
template <class Value>
__device__ Value block_sum(Value value, Value* room) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  if (threadIdx.x % kWarp == 0) room[warp] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < static_cast<int>(blockDim.x) / kWarp; ++i) value += room[i];
  }
  return value;
}

}  // namespace millrace

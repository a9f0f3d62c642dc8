// Lanes of a warp as the team of one row (team.h), and the sum of a block in an order that never
// varies.
#pragma once

#include <cuda_runtime.h>

namespace millrace {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// Of each kLanes neighbours. Both give every lane the same bits: partners exchange, so each pair
// computes one value.
template <int kLanes = kWarp, class Value>
__device__ Value warp_sum(Value value) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

template <int kLanes = kWarp>
__device__ float warp_maximum(float value) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, value, distance);
    value = other > value ? other : value;
  }
  return value;
}

// kWarp / kLanes teams to a warp, which do everything together: as many rows at once.
template <int kTeamLanes>
struct TeamOf {
  static constexpr int kLanes = kTeamLanes;
  __device__ int lane() const { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ int size() const { return kLanes; }
  __device__ bool leads() const { return lane() == 0; }
  __device__ void sync() const { __syncwarp(); }
  __device__ float maximum(float value) const { return warp_maximum<kLanes>(value); }
  __device__ float sum(float value) const { return warp_sum<kLanes>(value); }
  __device__ void add(unsigned* to, unsigned value) const { atomicAdd(to, value); }
};

using WarpTeam = TeamOf<kWarp>;

// Of all threads of the block, to thread 0. Every thread calls it; `room` holds one value per warp
// and is free again after the next __syncthreads().
template <class Value>
__device__ Value block_sum(Value value, Value* room) {
  value = warp_sum(value);
  if (threadIdx.x % kWarp == 0) room[threadIdx.x / kWarp] = value;
  __syncthreads();
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  constexpr int kFew = 8;  // for one thread to add up
  if (warps > kFew) {
    if (threadIdx.x >= kWarp) return value;
    return warp_sum(static_cast<int>(threadIdx.x) < warps ? room[threadIdx.x] : Value(0));
  }
  if (threadIdx.x == 0) {
    for (int i = 1; i < warps; ++i) value += room[i];
  }
  return value;
}

}  // namespace millrace

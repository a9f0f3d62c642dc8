// What every .metal file includes first: the standard library, the argument structs, and a
// simdgroup as the team of one row (team.h), whose sums have an order that never varies.
#pragma once

#include <metal_stdlib>

#include "metal_args.h"

// The bits are the CPU's only if no multiply and add are fused. (The library is compiled without
// fast math, too; the pragma is what keeps products and sums apart.)
#pragma clang fp contract(off)

namespace millrace {

// All give every lane the same bits: partners exchange, so each pair computes one value. The
// library's simd_sum does not say in which order it adds.
inline float simdgroup_sum(float value) {
  for (ushort distance = kSimdWidth / 2; distance > 0; distance /= 2) {
    value += metal::simd_shuffle_xor(value, distance);
  }
  return value;
}

inline float simdgroup_maximum(float value) {
  for (ushort distance = kSimdWidth / 2; distance > 0; distance /= 2) {
    const float other = metal::simd_shuffle_xor(value, distance);
    value = other > value ? other : value;
  }
  return value;
}

struct SimdTeam {
  uint lane_index;  // of the thread in its simdgroup

  int lane() const { return (int)lane_index; }
  int size() const { return (int)kSimdWidth; }
  bool leads() const { return lane_index == 0; }
  void sync() const { metal::simdgroup_barrier(metal::mem_flags::mem_device); }
  int minimum(int value) const { return metal::simd_min(value); }
  float maximum(float value) const { return simdgroup_maximum(value); }
  float sum(float value) const { return simdgroup_sum(value); }
};

inline SimdTeam simd_team(uint thread_index) {
  SimdTeam team;
  team.lane_index = thread_index % kSimdWidth;
  return team;
}

}  // namespace millrace

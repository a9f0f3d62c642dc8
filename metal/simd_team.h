// What every .metal file includes first: the standard library, the argument structs, and a
// simdgroup as the team of one row (team.h), whose sums have an order that never varies.
#pragma once

#include <metal_stdlib>

// The bits are the CPU's only if no multiply and add are fused, in what follows as well. (The
// library is compiled without fast math, too; the pragma is what keeps products and sums apart.)
#pragma clang fp contract(off)

#include "metal_args.h"

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

// Of a threadgroup, in the order of its simdgroups, to all its threads; every thread calls them.
// `room` holds a float for each simdgroup.
inline float threadgroup_sum(float value, threadgroup float* room, uint thread_index,
                             uint threads) {
  value = simdgroup_sum(value);
  metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);  // the room is free again
  if (thread_index % kSimdWidth == 0) room[thread_index / kSimdWidth] = value;
  metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  float sum = room[0];
  for (uint i = 1; i < threads / kSimdWidth; ++i) sum += room[i];
  return sum;
}

// A value that is not a number may be passed over.
inline float threadgroup_maximum(float value, threadgroup float* room, uint thread_index,
                                 uint threads) {
  value = simdgroup_maximum(value);
  metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  if (thread_index % kSimdWidth == 0) room[thread_index / kSimdWidth] = value;
  metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  float top = room[0];
  for (uint i = 1; i < threads / kSimdWidth; ++i) top = room[i] > top ? room[i] : top;
  return top;
}

// Of the parts that kParts threadgroups left, by one of as many threads, to all of them.
inline float sum_of_parts(device const float* parts, threadgroup float* room, uint thread_index) {
  return threadgroup_sum(parts[thread_index], room, thread_index, kParts);
}

inline float maximum_of_parts(device const float* parts, threadgroup float* room,
                              uint thread_index) {
  return threadgroup_maximum(parts[thread_index], room, thread_index, kParts);
}

// Rows go round robin among the simdgroups of kParts threadgroups.
inline int first_row_of_part(uint part, uint thread_index) {
  return (int)(part * (kPartThreads / kSimdWidth) + thread_index / kSimdWidth);
}
MR_CONSTEXPR int kRowsBetweenParts = (int)(kParts * (kPartThreads / kSimdWidth));

// A thread's place in a sum over the rows of each column (ColumnChunks).
struct ColumnPlace {
  u64 column;
  bool is_inside;
  int first, end;  // its rows: first, first + kRowsOfAGroup, ...
};

inline ColumnPlace column_place(constant const ColumnChunks& columns, metal::uint3 group,
                                uint thread_index) {
  ColumnPlace place;
  place.column = (u64)group.x * kSimdWidth + thread_index % kSimdWidth;
  place.is_inside = place.column < columns.width;
  const int begin = (int)group.y * columns.rows_of_a_chunk;
  const int end = begin + columns.rows_of_a_chunk;
  place.first = begin + (int)(thread_index / kSimdWidth);
  place.end = end < columns.rows ? end : columns.rows;
  if (!place.is_inside) place.end = 0;
  return place;
}

// Leaves the chunk's sum number `which`; every thread calls it. `room` holds a float for each
// thread.
inline void leave_column_sum(constant const ColumnChunks& columns, thread const ColumnPlace& place,
                             metal::uint3 group, u32 which, float value, threadgroup float* room,
                             uint thread_index) {
  metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);  // the room is free again
  room[thread_index] = value;
  metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  if (thread_index >= kSimdWidth || !place.is_inside) return;
  float sum = 0.0f;
  for (u32 i = 0; i < kRowsOfAGroup; ++i) sum += room[i * kSimdWidth + thread_index];
  columns.partial[((u64)group.y * columns.sums + which) * columns.width + place.column] = sum;
}

}  // namespace millrace

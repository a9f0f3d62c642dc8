// The seeded gather of a batch out of the ring (gather.h). One simdgroup moves one row; every lane
// draws the row's index itself: cheaper than telling the others.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

namespace millrace {

inline u64 sample_of_simdgroup(uint group, uint thread_index) {
  return (u64)group * (kGatherThreads / kSimdWidth) + thread_index / kSimdWidth;
}

// Whole rows, a Piece at a time.
template <class Piece>
void gather_pieces(constant const GatherArgs& args, uint group, uint thread_index) {
  const Gather gather = args.gather;
  const u64 sample = sample_of_simdgroup(group, thread_index);
  if (sample >= gather.count) return;
  const u64 pieces = gather.row_stride * sizeof(float) / sizeof(Piece);
  const u64 row = gather_row(gather, sample) % gather.capacity_rows;
  device const Piece* from = (device const Piece*)gather.ring + row * pieces;
  device Piece* to = (device Piece*)gather.batch + sample * pieces;
  for (u64 i = thread_index % kSimdWidth; i < pieces; i += kSimdWidth) to[i] = from[i];
}

// The column of the ring's row that belongs at column `to` of the batch.
inline u32 source_column(thread const BatchColumns& columns, u32 to) {
  u32 from = to;
  for (u32 s = 0; s < kMaxColumnSegments; ++s) {
    const ColumnSegment segment = columns.segments[s];
    if (s < columns.segment_count && to >= segment.to) from = segment.from + (to - segment.to);
  }
  return from;
}

}  // namespace millrace

// Rows of the ring and of the batch begin at multiples of 16 bytes.
kernel void gather_rows_aligned(constant const GatherArgs& args [[buffer(0)]],
                                uint3 group [[threadgroup_position_in_grid]],
                                uint thread_index [[thread_index_in_threadgroup]]) {
  gather_pieces<float4>(args, group.x, thread_index);
}

kernel void gather_rows(constant const GatherArgs& args [[buffer(0)]],
                        uint3 group [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_index_in_threadgroup]]) {
  gather_pieces<float>(args, group.x, thread_index);
}

// The same with the columns in another order: parts of rows have no alignment of their own.
kernel void gather_columns(constant const GatherArgs& args [[buffer(0)]],
                           uint3 group [[threadgroup_position_in_grid]],
                           uint thread_index [[thread_index_in_threadgroup]]) {
  const Gather gather = args.gather;
  const u64 sample = sample_of_simdgroup(group.x, thread_index);
  if (sample >= gather.count) return;
  const u64 row = gather_row(gather, sample) % gather.capacity_rows;
  device const float* from = gather.ring + row * gather.row_stride;
  device float* to = gather.batch + sample * gather.columns.stride;
  const u32 width = gather.columns.width();
  for (u32 i = thread_index % kSimdWidth; i < width; i += kSimdWidth) {
    to[i] = from[source_column(gather.columns, i)];
  }
}

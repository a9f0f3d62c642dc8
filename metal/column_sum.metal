// Sums over rows, of each column: chunks of rows, then the chunks.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

kernel void column_sum(constant const ColumnSumArgs& args [[buffer(0)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint thread_index [[thread_index_in_threadgroup]],
                       threadgroup float* room [[threadgroup(0)]]) {
  const ColumnPlace place = column_place(args.columns, group, thread_index);
  float sum = 0.0f;
  for (int r = place.first; r < place.end; r += kRowsOfAGroup) {
    sum += args.values[(u64)r * args.columns.width + place.column];
  }
  leave_column_sum(args.columns, place, group, args.which, sum, room, thread_index);
}

// A row of threadgroups for each of the sums.
kernel void add_chunks(constant const AddChunksArgs& args [[buffer(0)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint thread_index [[thread_index_in_threadgroup]]) {
  const u64 i = (u64)group.x * kElementThreads + thread_index;
  if (i >= args.width) return;
  float sum = 0.0f;
  for (u32 chunk = 0; chunk < args.chunks; ++chunk) {
    sum += args.partial[((u64)chunk * args.count + group.y) * args.width + i];
  }
  args.sums[group.y][i] = sum;
}

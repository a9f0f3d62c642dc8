// Copies between two places of the device where a blit cannot stand: in an indirect command buffer.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

namespace millrace {

// A row of the grid of threadgroups per row of the copy.
template <class Piece>
void copy_pieces(constant const CopyRowsArgs& args, uint3 group, uint thread_index) {
  const u64 piece = (u64)group.x * kCopyThreads + thread_index;
  if (piece >= args.row_pieces) return;
  device Piece* to = (device Piece*)args.to + group.y * args.to_pitch;
  device const Piece* from = (device const Piece*)args.from + group.y * args.from_pitch;
  to[piece] = from[piece];
}

}  // namespace millrace

kernel void copy_rows_by_16(constant const CopyRowsArgs& args [[buffer(0)]],
                            uint3 group [[threadgroup_position_in_grid]],
                            uint thread_index [[thread_index_in_threadgroup]]) {
  copy_pieces<uint4>(args, group, thread_index);
}

kernel void copy_rows_by_4(constant const CopyRowsArgs& args [[buffer(0)]],
                           uint3 group [[threadgroup_position_in_grid]],
                           uint thread_index [[thread_index_in_threadgroup]]) {
  copy_pieces<uint>(args, group, thread_index);
}

kernel void copy_rows_by_1(constant const CopyRowsArgs& args [[buffer(0)]],
                           uint3 group [[threadgroup_position_in_grid]],
                           uint thread_index [[thread_index_in_threadgroup]]) {
  copy_pieces<uchar>(args, group, thread_index);
}

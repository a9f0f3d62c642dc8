// Unpacking of a gathered batch: a simdgroup moves one row.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

kernel void unpack_rows(constant const UnpackArgs& args [[buffer(0)]],
                        uint3 group [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_index_in_threadgroup]]) {
  const int r = (int)(group.x * kRowsOfAGroup + thread_index / kSimdWidth);
  if (r >= args.rows) return;
  const bool is_mirrored = r >= args.source_rows;
  const u64 source_row = (u64)(is_mirrored ? r - args.source_rows : r);
  device const float* row =
      args.arguments->rows + source_row * args.arguments->row_stride + args.column;
  device float* target = args.target + (u64)r * (u64)args.target_stride;
  for (int i = (int)(thread_index % kSimdWidth); i < args.width; i += kSimdWidth) {
    const float x = is_mirrored ? args.mirror_sign[i] * row[args.mirror_source[i]] : row[i];
    target[i] = args.mean != nullptr ? (x - args.mean[i]) * args.scale[i] : x;
  }
}

// Unpacking of a gathered batch: a simdgroup moves one row, part by part.
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
  device const float* rows = args.arguments->rows + source_row * args.arguments->row_stride;
  for (int p = 0; p < args.count; ++p) {
    constant const UnpackPartArgs& part = args.parts[p];
    device const float* row = rows + part.column;
    device float* target = part.target + (u64)r * (u64)part.target_stride;
    for (int i = (int)(thread_index % kSimdWidth); i < part.width; i += kSimdWidth) {
      const float x = is_mirrored ? part.mirror_sign[i] * row[part.mirror_source[i]] : row[i];
      target[i] = part.mean != nullptr ? (x - part.mean[i]) * part.scale[i] : x;
    }
  }
}

// Rows of parameters to their lengths, and the targets after them: a simdgroup takes one row,
// whichever tensor it belongs to.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

kernel void scale_rows(constant const ScaleRowsArgs& args [[buffer(0)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint thread_index [[thread_index_in_threadgroup]]) {
  const SimdTeam team = simd_team(thread_index);
  const int row = (int)(group.x * kRowsOfAGroup + thread_index / kSimdWidth);
  if (row >= args.first_row[args.count] || *args.finite != 1.0f) return;  // whole simdgroups
  int block = 0;
  while (row >= args.first_row[block + 1]) ++block;
  const RowBlock own = args.blocks[block];
  const u64 first = own.first + (u64)(row - args.first_row[block]) * (u64)own.width;
  device float* values = args.parameters + first;
  float scale = 1.0f;
  if (own.length > 0.0f) {
    float squares = 0.0f;
    for (int i = team.lane(); i < own.width; i += team.size()) squares += values[i] * values[i];
    squares = team.sum(squares);
    // A row of zeros has no direction and stays.
    scale = squares > 0.0f ? own.length / mr_sqrt(squares) : 1.0f;
  }
  const float rate = args.arguments->target_rate;
  for (int i = team.lane(); i < own.width; i += team.size()) {
    const float value = values[i] * scale;
    values[i] = value;
    if (args.target == nullptr) continue;
    args.target[first + i] += rate * (value - args.target[first + i]);
  }
}

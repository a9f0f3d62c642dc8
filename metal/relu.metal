// Gradients through ReLU layers.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

kernel void relu_backward(constant const ReluBackwardArgs& args [[buffer(0)]],
                          uint3 group [[threadgroup_position_in_grid]],
                          uint thread_index [[thread_index_in_threadgroup]],
                          threadgroup float* room [[threadgroup(0)]]) {
  const ColumnPlace place = column_place(args.columns, group, thread_index);
  float sum = 0.0f;
  for (int r = place.first; r < place.end; r += kRowsOfAGroup) {
    const u64 at = (u64)r * args.columns.width + place.column;
    const float passed = args.output[at] > 0.0f ? args.gradient[at] : 0.0f;
    args.gradient[at] = passed;
    sum += passed;
  }
  if (args.columns.partial == nullptr) return;
  leave_column_sum(args.columns, place, group, 0, sum, room, thread_index);
}

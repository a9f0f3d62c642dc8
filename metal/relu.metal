// ReLU layers beside their products.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

// x + bias, where that is not negative; what is not a number stays one.
kernel void relu_forward(constant const ReluForwardArgs& args [[buffer(0)]],
                         uint3 group [[threadgroup_position_in_grid]],
                         uint thread_index [[thread_index_in_threadgroup]]) {
  const u64 i = (u64)group.x * kElementThreads + thread_index;
  if (i >= args.count) return;
  const float x = args.values[i] + args.bias[i % args.width];
  args.values[i] = x < 0.0f ? 0.0f : x;
}

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

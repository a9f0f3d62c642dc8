// Gradients through ReLU layers.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

kernel void relu_backward(constant const ReluBackwardArgs& args [[buffer(0)]],
                          uint3 group [[threadgroup_position_in_grid]],
                          uint thread_index [[thread_index_in_threadgroup]]) {
  const u64 i = (u64)group.x * kElementThreads + thread_index;
  if (i < args.count && !(args.output[i] > 0.0f)) args.gradient[i] = 0.0f;
}

// The general ops: a thread for each element.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

// The bits of the CPU.
kernel void pointwise(constant const PointwiseArgs& args [[buffer(0)]],
                      uint3 group [[threadgroup_position_in_grid]],
                      uint thread_index [[thread_index_in_threadgroup]]) {
  const u64 i = (u64)group.x * kElementThreads + thread_index;
  if (i >= args.count) return;
  const InputSource from_a = args.a, from_b = args.b;
  const FloatValue scalar = args.scalar;
  const float a = from_a.get()[i], b = from_b.get()[i], s = scalar.get();
  switch (args.function) {
    case Pointwise::kScale:
      args.y[i] = pointwise_element<Pointwise::kScale>(a, b, s);
      break;
    case Pointwise::kAdd:
      args.y[i] = pointwise_element<Pointwise::kAdd>(a, b, s);
      break;
    case Pointwise::kAddScaled:
      args.y[i] = pointwise_element<Pointwise::kAddScaled>(a, b, s);
      break;
    case Pointwise::kMultiply:
      args.y[i] = pointwise_element<Pointwise::kMultiply>(a, b, s);
      break;
    case Pointwise::kTanh:
      args.y[i] = pointwise_element<Pointwise::kTanh>(a, b, s);
      break;
  }
}

kernel void random_fill(constant const RandomFillArgs& args [[buffer(0)]],
                        uint3 group [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_index_in_threadgroup]]) {
  const u64 i = (u64)group.x * kElementThreads + thread_index;
  if (i >= args.count) return;
  const RandomSource source =
      random_source(args.arguments->seed, args.stream, args.environment, args.arguments->tick);
  args.target[i] = random_normal(source, (u32)i);
}

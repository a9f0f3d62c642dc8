#include "pointwise.h"

#include <cstring>

#include "philox.h"

namespace millrace {
namespace {

// y may be a or b: element i is written after it was read, and nothing else of the same i is.
template <Pointwise kFunction>
void apply(const PointwiseOp& op, const CpuFrame& frame) {
  const float* a = frame.source(op.a);
  const float* b = op.b.used() ? frame.source(op.b) : a;
  const float s = frame.scalar(op.scalar);
  float* y = frame.floats(op.y);
  for (uint64_t i = 0; i < op.count; ++i) y[i] = pointwise_element<kFunction>(a[i], b[i], s);
}

}  // namespace

void execute(const PointwiseOp& op, const CpuFrame& frame) {
  switch (op.function) {
    case Pointwise::kScale:
      return apply<Pointwise::kScale>(op, frame);
    case Pointwise::kAdd:
      return apply<Pointwise::kAdd>(op, frame);
    case Pointwise::kAddScaled:
      return apply<Pointwise::kAddScaled>(op, frame);
    case Pointwise::kMultiply:
      return apply<Pointwise::kMultiply>(op, frame);
    case Pointwise::kTanh:
      return apply<Pointwise::kTanh>(op, frame);
  }
}

void execute(const RandomFillOp& op, const CpuFrame& frame) {
  const RandomSource source =
      random_source(frame.arguments.seed, op.stream, op.environment, frame.arguments.tick);
  float* target = frame.floats(op.target);
  for (uint64_t i = 0; i < op.count; ++i) target[i] = random_normal(source, static_cast<u32>(i));
}

void execute(const CopyInOp& op, const CpuFrame& frame) {
  std::memcpy(frame.floats(op.target), frame.inputs.buffers[op.buffer], op.count * sizeof(float));
}

void execute(const HostFunctionOp& op, const CpuFrame& frame) {
  op.function(frame.source(op.source), op.source_count, frame.floats(op.target), op.target_count);
}

}  // namespace millrace

#include "relu_layer.h"

#include "lanes.h"

namespace millrace {
namespace {

MR_CLONES void backward(float* __restrict gradient, const float* __restrict output, size_t count) {
  for (size_t i = 0; i < count; ++i) gradient[i] = output[i] > 0.0f ? gradient[i] : 0.0f;
}

}  // namespace

void execute(const ReluBackwardOp& op, const CpuFrame& frame) {
  backward(frame.floats(op.gradient), frame.floats(op.output),
           static_cast<size_t>(op.rows) * static_cast<size_t>(op.width));
}

}  // namespace millrace

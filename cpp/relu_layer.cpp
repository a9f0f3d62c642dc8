#include "relu_layer.h"

#include <algorithm>

#include "lanes.h"

namespace millrace {
namespace {

MR_CLONES void backward_row(float* __restrict gradient, const float* __restrict output, int width) {
  for (int i = 0; i < width; ++i) gradient[i] = output[i] > 0.0f ? gradient[i] : 0.0f;
}

MR_CLONES void add_row(const float* __restrict values, float* __restrict sums, int width) {
  for (int i = 0; i < width; ++i) sums[i] += values[i];
}

}  // namespace

void execute(const ReluBackwardOp& op, const CpuFrame& frame) {
  float* sums = op.bias_gradient.used() ? frame.floats(op.bias_gradient) : nullptr;
  if (sums != nullptr) std::fill_n(sums, op.width, 0.0f);
  for (int r = 0; r < op.rows; ++r) {
    const size_t at = static_cast<size_t>(r) * op.width;
    float* gradient = frame.floats(op.gradient) + at;
    backward_row(gradient, frame.floats(op.output) + at, op.width);
    if (sums != nullptr) add_row(gradient, sums, op.width);
  }
}

}  // namespace millrace

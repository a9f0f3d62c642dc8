#include "rms_norm.h"

#include <algorithm>
#include <vector>

#include "lanes.h"
#include "rms_norm_body.h"

namespace millrace {
namespace {

// Returns the inverse.
MR_CLONES float normalise_row(const float* __restrict x, const float* __restrict gain,
                              float* __restrict output, int width) {
  const float inverse = inverse_rms_of(lane_dot(x, x, width), width);
  for (int i = 0; i < width; ++i) output[i] = x[i] * inverse * gain[i];
  return inverse;
}

// `scaled` is room for a row.
MR_CLONES void gradient_row(const float* __restrict gradient, const float* __restrict x,
                            const float* __restrict gain, float inverse, float* __restrict scaled,
                            float* __restrict gain_sums, float* input_gradient, int width) {
  for (int i = 0; i < width; ++i) {
    gain_sums[i] += gradient[i] * (x[i] * inverse);
    scaled[i] = gradient[i] * gain[i];
  }
  const float slope = lane_dot(scaled, x, width) * inverse / static_cast<float>(width);
  for (int i = 0; i < width; ++i) {
    input_gradient[i] = inverse * (scaled[i] - x[i] * inverse * slope);
  }
}

}  // namespace

void execute(const RmsNormForwardOp& op, const CpuFrame& frame) {
  for (int r = 0; r < op.rows; ++r) {
    for (int g = 0; g < op.groups; ++g) {
      const size_t row = static_cast<size_t>(r) * op.groups + g;
      frame.floats(op.inverse_rms)[row] =
          normalise_row(frame.floats(op.input) + row * op.width,
                        frame.floats(op.gain) + static_cast<size_t>(g) * op.width,
                        frame.floats(op.output) + row * op.width, op.width);
    }
  }
}

void execute(const RmsNormBackwardOp& op, const CpuFrame& frame) {
  std::vector<float> scaled(op.width);
  std::vector<float> gain_sums(static_cast<size_t>(op.groups) * op.width, 0.0f);
  for (int r = 0; r < op.rows; ++r) {
    for (int g = 0; g < op.groups; ++g) {
      const size_t row = static_cast<size_t>(r) * op.groups + g;
      const size_t group = static_cast<size_t>(g) * op.width;
      gradient_row(frame.floats(op.gradient) + row * op.width,
                   frame.floats(op.input) + row * op.width, frame.floats(op.gain) + group,
                   frame.floats(op.inverse_rms)[row], scaled.data(), gain_sums.data() + group,
                   frame.floats(op.input_gradient) + row * op.width, op.width);
    }
  }
  if (op.gain_gradient.used()) {
    std::copy(gain_sums.begin(), gain_sums.end(), frame.floats(op.gain_gradient));
  }
}

}  // namespace millrace

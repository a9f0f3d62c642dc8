#include "dense_layer.h"

#include <algorithm>
#include <vector>

#include "elementary.h"
#include "gemm.h"
#include "lanes.h"

namespace millrace {
namespace {

constexpr float kNormEpsilon = 1e-5f;

struct RowNorm {
  float mean, inverse_deviation;
};

// `output` may be x.
MR_CLONES RowNorm forward_row(const float* x, const float* __restrict bias,
                              const float* __restrict gain, const float* __restrict shift,
                              float* output, int width) {
  const float share = 1.0f / static_cast<float>(width);
  for (int i = 0; i < width; ++i) output[i] = x[i] + bias[i];
  const float mean = lane_sum(output, width) * share;
  for (int i = 0; i < width; ++i) output[i] -= mean;
  const float variance = lane_dot(output, output, width) * share;
  const float inverse_deviation = 1.0f / mr_sqrt(variance + kNormEpsilon);
  for (int i = 0; i < width; ++i) {
    const float y = output[i] * inverse_deviation * gain[i] + shift[i];
    output[i] = y / (1.0f + mr_exp(-y));
  }
  return {mean, inverse_deviation};
}

MR_CLONES void normalise_row(const float* __restrict x, const float* __restrict bias, RowNorm norm,
                             float* __restrict normalised, int width) {
  for (int i = 0; i < width; ++i) {
    normalised[i] = (x[i] + bias[i] - norm.mean) * norm.inverse_deviation;
  }
}

// In: gradient of the output. Out: gradient of the affine's result, silu'(y) applied.
MR_CLONES void silu_gradient_row(float* __restrict gradient, const float* __restrict normalised,
                                 const float* __restrict gain, const float* __restrict shift,
                                 int width) {
  for (int i = 0; i < width; ++i) {
    const float y = normalised[i] * gain[i] + shift[i];
    const float sigmoid = 1.0f / (1.0f + mr_exp(-y));
    gradient[i] *= sigmoid * (1.0f + y * (1.0f - sigmoid));
  }
}

MR_CLONES void add_parameter_gradients(const float* __restrict gradient,
                                       const float* __restrict normalised,
                                       float* __restrict gain_gradient,
                                       float* __restrict shift_gradient, int width) {
  for (int i = 0; i < width; ++i) {
    gain_gradient[i] += gradient[i] * normalised[i];
    shift_gradient[i] += gradient[i];
  }
}

// In: gradient of the affine's result. Out: gradient of the linear part.
MR_CLONES void norm_gradient_row(float* __restrict gradient, const float* __restrict normalised,
                                 const float* __restrict gain, float inverse_deviation, int width) {
  const float share = 1.0f / static_cast<float>(width);
  for (int i = 0; i < width; ++i) gradient[i] *= gain[i];
  const float mean = lane_sum(gradient, width) * share;
  const float slope = lane_dot(gradient, normalised, width) * share;
  for (int i = 0; i < width; ++i) {
    gradient[i] = inverse_deviation * (gradient[i] - mean - normalised[i] * slope);
  }
}

MR_CLONES void add_row(const float* __restrict values, float* __restrict sums, int width) {
  for (int i = 0; i < width; ++i) sums[i] += values[i];
}

}  // namespace

void execute(const LayerForwardOp& op, const CpuFrame& frame) {
  const float* linear = frame.floats(op.linear);
  float* output = frame.floats(op.output);
  float* mean = frame.floats(op.mean);
  float* inverse_deviation = frame.floats(op.inverse_deviation);
  const float* bias = frame.floats(op.bias);
  const float* gain = frame.floats(op.gain);
  const float* shift = frame.floats(op.shift);
  for (int r = 0; r < op.rows; ++r) {
    for (int g = 0; g < op.groups; ++g) {
      const size_t row = static_cast<size_t>(r) * op.groups + g;
      const size_t at = row * op.width;
      const size_t group = static_cast<size_t>(g) * op.width;
      const RowNorm norm = forward_row(linear + at, bias + group, gain + group, shift + group,
                                       output + at, op.width);
      mean[row] = norm.mean;
      inverse_deviation[row] = norm.inverse_deviation;
    }
  }
}

void execute(const DenseForwardOp& op, const CpuFrame& frame) {
  execute(op.product, frame);
  execute(op.layer, frame);
}

void execute(const LayerBackwardOp& op, const CpuFrame& frame) {
  float* gradient = frame.floats(op.gradient);
  const float* linear = frame.floats(op.linear);
  const float* mean = frame.floats(op.mean);
  const float* inverse_deviation = frame.floats(op.inverse_deviation);
  const float* bias = frame.floats(op.bias);
  const float* gain = frame.floats(op.gain);
  const float* shift = frame.floats(op.shift);
  const bool has_parameters = op.bias_gradient.used();
  const size_t parameters = static_cast<size_t>(op.groups) * op.width;
  float* bias_gradient = has_parameters ? frame.floats(op.bias_gradient) : nullptr;
  float* gain_gradient = has_parameters ? frame.floats(op.gain_gradient) : nullptr;
  float* shift_gradient = has_parameters ? frame.floats(op.shift_gradient) : nullptr;
  if (has_parameters) {
    std::fill_n(bias_gradient, parameters, 0.0f);
    std::fill_n(gain_gradient, parameters, 0.0f);
    std::fill_n(shift_gradient, parameters, 0.0f);
  }
  std::vector<float> normalised(op.width);
  for (int r = 0; r < op.rows; ++r) {
    for (int g = 0; g < op.groups; ++g) {
      const size_t row = static_cast<size_t>(r) * op.groups + g;
      const size_t at = row * op.width;
      const size_t group = static_cast<size_t>(g) * op.width;
      normalise_row(linear + at, bias + group, {mean[row], inverse_deviation[row]},
                    normalised.data(), op.width);
      silu_gradient_row(gradient + at, normalised.data(), gain + group, shift + group, op.width);
      if (has_parameters) {
        add_parameter_gradients(gradient + at, normalised.data(), gain_gradient + group,
                                shift_gradient + group, op.width);
      }
      norm_gradient_row(gradient + at, normalised.data(), gain + group, inverse_deviation[row],
                        op.width);
      if (has_parameters) add_row(gradient + at, bias_gradient + group, op.width);
    }
  }
}

void execute(const ColumnSumOp& op, const CpuFrame& frame) {
  float* sums = frame.floats(op.sums);
  std::fill_n(sums, op.width, 0.0f);
  for (int r = 0; r < op.rows; ++r) {
    add_row(frame.floats(op.values) + static_cast<size_t>(r) * op.width, sums, op.width);
  }
}

}  // namespace millrace

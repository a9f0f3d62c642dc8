// One row of a dense layer's part that is not a matrix product, as a team of lanes computes it:
// what dense_layer.cpp does with vectors. A lane touches the same columns in every loop, so rows
// need no sync. Freestanding.
#pragma once

#include "elementary.h"
#include "team.h"

namespace millrace {

#define MR_LAYER_EPSILON 1e-5f

// Where the gradients of a group's parameters add up: `width` floats each, or all null.
struct LayerSums {
  float* gain;
  float* shift;
  float* bias;
};

// Returns the inverse deviation; x becomes the normalised values.
template <class Team>
MR_FN float layer_forward_row(const Team& team, float* x, const float* bias, const float* gain,
                              const float* shift, float* output, int width) {
  const float share = 1.0f / (float)width;
  float sum = 0.0f;
  for (int i = team.lane(); i < width; i += team.size()) {
    x[i] += bias[i];
    sum += x[i];
  }
  const float mean = team.sum(sum) * share;
  float squares = 0.0f;
  for (int i = team.lane(); i < width; i += team.size()) {
    x[i] -= mean;
    squares += x[i] * x[i];
  }
  const float inverse_deviation = 1.0f / mr_sqrt(team.sum(squares) * share + MR_LAYER_EPSILON);
  for (int i = team.lane(); i < width; i += team.size()) {
    x[i] *= inverse_deviation;
    const float y = x[i] * gain[i] + shift[i];
    output[i] = y / (1.0f + mr_exp(-y));
  }
  return inverse_deviation;
}

// `gradient` holds dL/dy on entry and dL/dlinear on return.
template <class Team>
MR_FN void layer_backward_row(const Team& team, float* gradient, const float* normalised,
                              const float* gain, const float* shift, float inverse_deviation,
                              int width, LayerSums sums) {
  const float share = 1.0f / (float)width;
  float total = 0.0f, slope = 0.0f;
  for (int i = team.lane(); i < width; i += team.size()) {
    const float y = normalised[i] * gain[i] + shift[i];
    const float sigmoid = 1.0f / (1.0f + mr_exp(-y));
    const float before_silu = gradient[i] * sigmoid * (1.0f + y * (1.0f - sigmoid));
    if (sums.gain) {
      sums.gain[i] += before_silu * normalised[i];
      sums.shift[i] += before_silu;
    }
    gradient[i] = before_silu * gain[i];
    total += gradient[i];
    slope += gradient[i] * normalised[i];
  }
  const float mean = team.sum(total) * share;
  slope = team.sum(slope) * share;
  for (int i = team.lane(); i < width; i += team.size()) {
    gradient[i] = inverse_deviation * (gradient[i] - mean - normalised[i] * slope);
    if (sums.bias) sums.bias[i] += gradient[i];
  }
}

#undef MR_LAYER_EPSILON

}  // namespace millrace

// One row of a dense layer's part that is not a matrix product, as a team of lanes computes it:
// what dense_layer.cpp does with vectors. The caller reads a lane's columns, the next row's before
// it computes this one if it likes, so a row passes through memory once; the lane also keeps the
// parameters of its columns and the sums over rows, as long as the team computes rows of one group.
// Freestanding.
#pragma once

#include "elementary.h"
#include "own_columns_body.h"

namespace millrace {

#define MR_LAYER_EPSILON 1e-5f

// A device's own exponential where it has a fast one: at most 2 + 1.2 |y| units in the last place
// off, which is least where the sigmoid is not nearly 0 or 1, and a tenth of the instructions.
MR_LOOP_FN float layer_sigmoid(float y) {
#if defined(__CUDA_ARCH__)
  return 1.0f / (1.0f + __expf(-y));
#else
  return 1.0f / (1.0f + mr_exp(-y));
#endif
}

// Of a group, a lane's columns.
template <int kOwn>
struct LayerParameters {
  float bias[kOwn], gain[kOwn], shift[kOwn];  // the backward pass has no use for the bias
};

// Gradients of the parameters, summed over the rows that the team has computed.
template <int kOwn>
struct LayerSums {
  float gain[kOwn] = {}, shift[kOwn] = {}, bias[kOwn] = {};
};

// A row as the backward pass finds it, a lane's columns.
template <int kOwn>
struct LayerGradientRow {
  float gradient[kOwn], normalised[kOwn];
  float inverse_deviation;
};

// From x, the lane's columns of the linear values. Returns the inverse deviation.
template <int kOwn, class Team>
MR_LOOP_FN float layer_forward_row(const Team& team, const LayerParameters<kOwn>& parameters,
                                   const float (&x)[kOwn], float* normalised, float* output,
                                   int width) {
  const float share = 1.0f / (float)width;
  float own_x[kOwn];
  float sum = 0.0f;
  each_own_column<kOwn>(team, width, [&](int own, int) {
    own_x[own] = x[own] + parameters.bias[own];
    sum += own_x[own];
  });
  const float mean = team.sum(sum) * share;
  float squares = 0.0f;
  each_own_column<kOwn>(team, width, [&](int own, int) {
    own_x[own] -= mean;
    squares += own_x[own] * own_x[own];
  });
  const float inverse_deviation = 1.0f / mr_sqrt(team.sum(squares) * share + MR_LAYER_EPSILON);
  each_own_column<kOwn>(team, width, [&](int own, int column) {
    const float value = own_x[own] * inverse_deviation;
    const float y = value * parameters.gain[own] + parameters.shift[own];
    normalised[column] = value;
    output[column] = y * layer_sigmoid(y);
  });
  return inverse_deviation;
}

// row.gradient is dL/dy; `gradient` becomes dL/dlinear. Sums are left alone without kHasSums.
template <bool kHasSums, int kOwn, class Team>
MR_LOOP_FN void layer_backward_row(const Team& team, const LayerParameters<kOwn>& parameters,
                                   const LayerGradientRow<kOwn>& row, float* gradient, int width,
                                   LayerSums<kOwn>& sums) {
  const float share = 1.0f / (float)width;
  float scaled[kOwn];  // dL/dnormalised
  float total = 0.0f, slope = 0.0f;
  each_own_column<kOwn>(team, width, [&](int own, int) {
    const float y = row.normalised[own] * parameters.gain[own] + parameters.shift[own];
    const float sigmoid = layer_sigmoid(y);
    const float before_silu = row.gradient[own] * sigmoid * (1.0f + y * (1.0f - sigmoid));
    if (kHasSums) {
      sums.gain[own] += before_silu * row.normalised[own];
      sums.shift[own] += before_silu;
    }
    scaled[own] = before_silu * parameters.gain[own];
    total += scaled[own];
    slope += scaled[own] * row.normalised[own];
  });
  const float mean = team.sum(total) * share;
  slope = team.sum(slope) * share;
  each_own_column<kOwn>(team, width, [&](int own, int column) {
    const float linear = row.inverse_deviation * (scaled[own] - mean - row.normalised[own] * slope);
    gradient[column] = linear;
    if (kHasSums) sums.bias[own] += linear;
  });
}

#undef MR_LAYER_EPSILON

}  // namespace millrace

// One row of a dense layer's part that is not a matrix product, as a team of lanes computes it:
// what dense_layer.cpp does with vectors. A lane keeps its columns from the first read to the last
// write, so a row passes through memory once; and the parameters of its columns and the sums over
// rows, as long as the team computes rows of one group. Freestanding.
#pragma once

#include "elementary.h"
#include "own_columns_body.h"

namespace millrace {

#define MR_LAYER_EPSILON 1e-5f

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

// Returns the inverse deviation; x becomes the normalised values.
template <int kOwn, class Team>
MR_LOOP_FN float layer_forward_row(const Team& team, const LayerParameters<kOwn>& parameters,
                                   float* x, float* output, int width) {
  const float share = 1.0f / (float)width;
  float own_x[kOwn];
  float sum = 0.0f;
  each_own_column<kOwn>(team, width, [&](int own, int column) { own_x[own] = x[column]; });
  each_own_column<kOwn>(team, width, [&](int own, int) {
    own_x[own] += parameters.bias[own];
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
    const float normalised = own_x[own] * inverse_deviation;
    const float y = normalised * parameters.gain[own] + parameters.shift[own];
    x[column] = normalised;
    output[column] = y / (1.0f + mr_exp(-y));
  });
  return inverse_deviation;
}

// `gradient` holds dL/dy on entry and dL/dlinear on return. Sums are left alone without kHasSums.
template <bool kHasSums, int kOwn, class Team>
MR_LOOP_FN void layer_backward_row(const Team& team, const LayerParameters<kOwn>& parameters,
                                   float* gradient, const float* normalised,
                                   float inverse_deviation, int width, LayerSums<kOwn>& sums) {
  const float share = 1.0f / (float)width;
  float own_gradient[kOwn], own_normalised[kOwn];
  float total = 0.0f, slope = 0.0f;
  each_own_column<kOwn>(team, width, [&](int own, int column) {
    own_gradient[own] = gradient[column];
    own_normalised[own] = normalised[column];
  });
  each_own_column<kOwn>(team, width, [&](int own, int) {
    const float y = own_normalised[own] * parameters.gain[own] + parameters.shift[own];
    const float sigmoid = 1.0f / (1.0f + mr_exp(-y));
    const float before_silu = own_gradient[own] * sigmoid * (1.0f + y * (1.0f - sigmoid));
    if (kHasSums) {
      sums.gain[own] += before_silu * own_normalised[own];
      sums.shift[own] += before_silu;
    }
    own_gradient[own] = before_silu * parameters.gain[own];
    total += own_gradient[own];
    slope += own_gradient[own] * own_normalised[own];
  });
  const float mean = team.sum(total) * share;
  slope = team.sum(slope) * share;
  each_own_column<kOwn>(team, width, [&](int own, int column) {
    const float linear =
        inverse_deviation * (own_gradient[own] - mean - own_normalised[own] * slope);
    gradient[column] = linear;
    if (kHasSums) sums.bias[own] += linear;
  });
}

#undef MR_LAYER_EPSILON

}  // namespace millrace

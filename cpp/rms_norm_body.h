// One row of one group of a root-mean-square normalisation (program.h, RmsNormForwardOp) as a team
// of lanes computes it; each lane keeps its columns. Freestanding.
#pragma once

#include "elementary.h"
#include "own_columns_body.h"

namespace millrace {

#define MR_RMS_NORM_EPSILON 1e-6f

MR_LOOP_FN float inverse_rms_of(float sum_of_squares, int width) {
  return 1.0f / mr_sqrt(sum_of_squares / (float)width + MR_RMS_NORM_EPSILON);
}

// `row` holds the lane's columns of the input, then of the output. Returns the inverse, to all
// lanes.
template <int kOwn, int kVector = 1, class Team>
MR_LOOP_FN float rms_norm_row(const Team& team, const float (&gain)[kOwn], float (&row)[kOwn],
                              int width) {
  float squares = 0.0f;
  each_own_column<kOwn, kVector>(team, width,
                                 [&](int own, int) { squares += row[own] * row[own]; });
  const float inverse = inverse_rms_of(team.sum(squares), width);
  each_own_column<kOwn, kVector>(team, width,
                                 [&](int own, int) { row[own] = row[own] * inverse * gain[own]; });
  return inverse;
}

// `gradient` holds the lane's columns of the output's gradient, then of the input's.
// gain_sums[own] += the row's part of the gain's gradient.
template <int kOwn, int kVector = 1, class Team>
MR_LOOP_FN void rms_norm_gradient_row(const Team& team, const float (&gain)[kOwn],
                                      const float (&x)[kOwn], float (&gradient)[kOwn],
                                      float inverse, int width, float (&gain_sums)[kOwn]) {
  float slope = 0.0f;
  each_own_column<kOwn, kVector>(team, width, [&](int own, int) {
    const float normalised = x[own] * inverse;
    slope += gradient[own] * gain[own] * normalised;
    gain_sums[own] += gradient[own] * normalised;
  });
  slope = team.sum(slope) / (float)width;
  each_own_column<kOwn, kVector>(team, width, [&](int own, int) {
    gradient[own] = inverse * (gradient[own] * gain[own] - x[own] * inverse * slope);
  });
}

#undef MR_RMS_NORM_EPSILON

}  // namespace millrace

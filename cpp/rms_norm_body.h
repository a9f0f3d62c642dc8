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

// Returns the inverse, to all lanes.
template <int kOwn, class Stored, class Team>
MR_LOOP_FN float rms_norm_row(const Team& team, const float (&gain)[kOwn], const float (&x)[kOwn],
                              Stored* output, int width) {
  float squares = 0.0f;
  each_own_column<kOwn>(team, width, [&](int own, int) { squares += x[own] * x[own]; });
  const float inverse = inverse_rms_of(team.sum(squares), width);
  each_own_column<kOwn>(team, width, [&](int own, int column) {
    output[column] = static_cast<Stored>(x[own] * inverse * gain[own]);
  });
  return inverse;
}

// gain_sums[own] += the row's part of the gain's gradient.
template <int kOwn, class Stored, class Team>
MR_LOOP_FN void rms_norm_gradient_row(const Team& team, const float (&gain)[kOwn],
                                      const float (&x)[kOwn], const float (&gradient)[kOwn],
                                      float inverse, Stored* input_gradient, int width,
                                      float (&gain_sums)[kOwn]) {
  float slope = 0.0f;
  each_own_column<kOwn>(team, width, [&](int own, int) {
    const float normalised = x[own] * inverse;
    slope += gradient[own] * gain[own] * normalised;
    gain_sums[own] += gradient[own] * normalised;
  });
  slope = team.sum(slope) / (float)width;
  each_own_column<kOwn>(team, width, [&](int own, int column) {
    input_gradient[column] =
        static_cast<Stored>(inverse * (gradient[own] * gain[own] - x[own] * inverse * slope));
  });
}

#undef MR_RMS_NORM_EPSILON

}  // namespace millrace

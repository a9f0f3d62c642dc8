// One value of a batch normalisation (program.h, BatchNorm) and its gradient, given its column.
// Freestanding; loops over the element functions vectorise.
#pragma once

#include "elementary.h"

namespace millrace {

#define MR_BATCH_NORM_EPSILON 1e-5f

struct BatchNormColumn {
  float mean, inverse_deviation, gain, shift;
};

MR_LOOP_FN float batch_norm_inverse_deviation(float variance) {
  return 1.0f / mr_sqrt(variance + MR_BATCH_NORM_EPSILON);
}

MR_LOOP_FN BatchNormColumn batch_norm_column(float mean, float variance, float gain, float shift) {
  BatchNormColumn column;
  column.mean = mean;
  column.inverse_deviation = batch_norm_inverse_deviation(variance);
  column.gain = gain;
  column.shift = shift;
  return column;
}

MR_LOOP_FN float batch_norm_normalised(const BatchNormColumn& column, float x) {
  return (x - column.mean) * column.inverse_deviation;
}

// `normalised` as above.
MR_LOOP_FN float batch_norm_value(const BatchNormColumn& column, float normalised, bool has_relu) {
  const float z = normalised * column.gain + column.shift;
  return has_relu && z <= 0.0f ? 0.0f : z;
}

// dL/dz from dL/dy.
MR_LOOP_FN float batch_norm_before_relu(const BatchNormColumn& column, float normalised,
                                        float gradient, bool has_relu) {
  const float z = normalised * column.gain + column.shift;
  return has_relu && z <= 0.0f ? 0.0f : gradient;
}

// dL/dx where the rows made the statistics: `mean_gradient` and `mean_slope` are the means over
// them of dL/dz and of dL/dz times the normalised value. Both are 0 for given statistics.
MR_LOOP_FN float batch_norm_input_gradient(const BatchNormColumn& column, float normalised,
                                           float before_relu, float mean_gradient,
                                           float mean_slope) {
  return column.gain * column.inverse_deviation *
         (before_relu - mean_gradient - normalised * mean_slope);
}

#undef MR_BATCH_NORM_EPSILON

}  // namespace millrace

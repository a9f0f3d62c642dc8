// One row of a dense layer's part that is not a matrix product, as a team of lanes computes it:
// what dense_layer.cpp does with vectors. The caller reads a lane's columns, the next row's before
// it computes this one if it likes, so a row passes through memory once; the lane also keeps the
// sums over rows, as long as the team computes rows of one group. Freestanding.
#pragma once

#include "elementary.h"
#include "own_columns_body.h"

namespace millrace {

#define MR_LAYER_EPSILON 1e-5f

// By a device's own functions where it has fast ones: two units in the last place off.
MR_LOOP_FN float layer_sigmoid(float y) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(1.0f + mr_fast_exp(-y)));
  return result;
#else
  return 1.0f / (1.0f + mr_exp(-y));
#endif
}

// For what is rounded to bf16 anyway: 2^-11 of the value off.
MR_LOOP_FN float layer_rough_tanh(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return mr_tanh(x);
#endif
}

MR_LOOP_FN float layer_rough_inverse_sqrt(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1.0f / mr_sqrt(x);
#endif
}

// Of a group, a lane's columns. Anything with these members may take its place, such as what reads
// them where they are used: each is asked for once a row, in order.
template <int kOwn>
struct LayerParameters {
  float bias[kOwn], gain[kOwn], shift[kOwn];
};

// Gradients of the parameters, summed over the rows that the team has computed.
template <int kOwn>
struct LayerSums {
  float gain[kOwn] = {}, shift[kOwn] = {}, bias[kOwn] = {};
};

struct LayerNorm {
  float mean, inverse_deviation;
};

// `row` holds the lane's columns of the linear values, then of the output.
template <int kOwn, int kVector = 1, class Team, class Parameters>
MR_LOOP_FN LayerNorm layer_forward_row(const Team& team, const Parameters& parameters,
                                       float (&row)[kOwn], int width) {
  const float share = 1.0f / (float)width;
  LayerNorm norm;
  float sum = 0.0f;
  each_own_column<kOwn, kVector>(team, width, [&](int own, int) {
    row[own] += parameters.bias[own];
    sum += row[own];
  });
  norm.mean = team.sum(sum) * share;
  float squares = 0.0f;
  each_own_column<kOwn, kVector>(team, width, [&](int own, int) {
    row[own] -= norm.mean;
    squares += row[own] * row[own];
  });
  norm.inverse_deviation = 1.0f / mr_sqrt(team.sum(squares) * share + MR_LAYER_EPSILON);
  each_own_column<kOwn, kVector>(team, width, [&](int own, int) {
    const float y =
        row[own] * norm.inverse_deviation * parameters.gain[own] + parameters.shift[own];
    row[own] = y * layer_sigmoid(y);
  });
  return norm;
}

// `gradient` holds the lane's columns of dL/dy, then of dL/dlinear; `linear` its linear values,
// then the normalised ones. Sums are left alone without kHasSums.
template <bool kHasSums, int kOwn, int kVector = 1, class Team, class Parameters>
MR_LOOP_FN void layer_backward_row(const Team& team, const Parameters& parameters,
                                   const LayerNorm& norm, float (&linear)[kOwn],
                                   float (&gradient)[kOwn], int width, LayerSums<kOwn>& sums) {
  const float share = 1.0f / (float)width;
  float total = 0.0f, slope = 0.0f;
  each_own_column<kOwn, kVector>(team, width, [&](int own, int) {
    const float normalised =
        (linear[own] + parameters.bias[own] - norm.mean) * norm.inverse_deviation;
    const float y = normalised * parameters.gain[own] + parameters.shift[own];
    const float sigmoid = layer_sigmoid(y);
    const float before_silu = gradient[own] * sigmoid * (1.0f + y * (1.0f - sigmoid));
    if (kHasSums) {
      sums.gain[own] += before_silu * normalised;
      sums.shift[own] += before_silu;
    }
    const float scaled = before_silu * parameters.gain[own];  // dL/dnormalised
    total += scaled;
    slope += scaled * normalised;
    gradient[own] = scaled;
    linear[own] = normalised;
  });
  const float mean = team.sum(total) * share;
  slope = team.sum(slope) * share;
  each_own_column<kOwn, kVector>(team, width, [&](int own, int) {
    gradient[own] = norm.inverse_deviation * (gradient[own] - mean - linear[own] * slope);
    if (kHasSums) sums.bias[own] += gradient[own];
  });
}

// ---- half the operations, for rows that are stored in bf16 ----
// Both sums of a row in one pass: their cancellation is below what bf16 keeps of the row. With
// h = y / 2, the activation is h + h tanh(h); so `parameters` holds half of gain and shift.

// Of half a value, which is what halved gains and shifts make.
MR_LOOP_FN float layer_rough_silu(float half) { return half * layer_rough_tanh(half) + half; }

// Of a row's sums; share: 1 / its width.
MR_LOOP_FN LayerNorm layer_rough_norm(float sum, float squares, float share) {
  LayerNorm norm;
  norm.mean = sum * share;
  float variance = squares * share - norm.mean * norm.mean;
  variance = variance < 0.0f ? 0.0f : variance;  // keeps what is not a number
  norm.inverse_deviation = layer_rough_inverse_sqrt(variance + MR_LAYER_EPSILON);
  return norm;
}

template <int kOwn, int kVector = 1, class Team, class Parameters>
MR_LOOP_FN LayerNorm layer_forward_row_rough(const Team& team, const Parameters& parameters,
                                             float (&row)[kOwn], int width) {
  const float share = 1.0f / (float)width;
  float sum = 0.0f, squares = 0.0f;
  each_own_column<kOwn, kVector>(team, width, [&](int own, int) {
    row[own] += parameters.bias[own];
    sum += row[own];
    squares += row[own] * row[own];
  });
  const LayerNorm norm = layer_rough_norm(team.sum(sum), team.sum(squares), share);
  const float offset = -norm.mean * norm.inverse_deviation;
  each_own_column<kOwn, kVector>(team, width, [&](int own, int) {
    const float normalised = row[own] * norm.inverse_deviation + offset;
    const float half = normalised * parameters.gain[own] + parameters.shift[own];
    row[own] = layer_rough_silu(half);
  });
  return norm;
}

// Of the sums, those of gain and shift are twice what they are.
template <bool kHasSums, int kOwn, int kVector = 1, class Team, class Parameters>
MR_LOOP_FN void layer_backward_row_rough(const Team& team, const Parameters& parameters,
                                         const LayerNorm& norm, float (&linear)[kOwn],
                                         float (&gradient)[kOwn], int width,
                                         LayerSums<kOwn>& sums) {
  const float share = 1.0f / (float)width;
  const float offset = -norm.mean * norm.inverse_deviation;
  float total = 0.0f, slope = 0.0f;
  each_own_column<kOwn, kVector>(team, width, [&](int own, int) {
    const float normalised = (linear[own] + parameters.bias[own]) * norm.inverse_deviation + offset;
    const float half = normalised * parameters.gain[own] + parameters.shift[own];
    const float tanh = layer_rough_tanh(half), sum = 1.0f + tanh;
    const float twice = gradient[own] * (sum * (half - half * tanh) + sum);  // dL/dy, of the layer
    if (kHasSums) {
      sums.gain[own] += twice * normalised;
      sums.shift[own] += twice;
    }
    const float scaled = twice * parameters.gain[own];  // dL/dnormalised
    total += scaled;
    slope += scaled * normalised;
    gradient[own] = scaled;
    linear[own] = normalised;
  });
  const float mean = team.sum(total) * share * norm.inverse_deviation;
  slope = team.sum(slope) * share * norm.inverse_deviation;
  each_own_column<kOwn, kVector>(team, width, [&](int own, int) {
    gradient[own] = gradient[own] * norm.inverse_deviation - (linear[own] * slope + mean);
    if (kHasSums) sums.bias[own] += gradient[own];
  });
}

#undef MR_LAYER_EPSILON

}  // namespace millrace

// One dimension of a tanh-squashed Gaussian action (program.h, SampleActionOp) and its gradient;
// and a row of them as a team of lanes computes it. Freestanding; loops over the element functions
// vectorise.
#pragma once

#include "action_density.h"
#include "philox.h"
#include "team.h"

namespace millrace {

#define MR_SQUASH_EPSILON 1e-6f
#define MR_LOG_FOUR 1.38629436f
#define MR_HALF_LOG_TWO_PI 0.918938533f

// tanh without a branch; `complement` = 1 - tanh^2, accurate where tanh rounds to one.
struct Squashed {
  float value, complement;
  float shrink;  // exp(-2 |x|)
};

MR_LOOP_FN Squashed squash(float x) {
  const float shrink = mr_exp(-2.0f * mr_abs(x));
  const float inverse = 1.0f / (1.0f + shrink);
  const float magnitude = (1.0f - shrink) * inverse;
  Squashed squashed;
  squashed.value = x < 0.0f ? -magnitude : magnitude;
  squashed.complement = 4.0f * shrink * inverse * inverse;
  squashed.shrink = shrink;
  return squashed;
}

MR_LOOP_FN float clamp_mean(MR_THREAD const ActionDensity& density, float mean) {
  mean = mean > density.mean_limit ? density.mean_limit : mean;
  return mean < -density.mean_limit ? -density.mean_limit : mean;
}

MR_LOOP_FN float log_deviation_of(MR_THREAD const ActionDensity& density, float raw) {
  return density.low + density.half_range * (squash(raw).value + 1.0f);
}

struct SampledAction {
  float action, density;  // density: this dimension's part of log pi
};

// kIsExact is density.is_exact, as a constant: loops over this then vectorise.
template <bool kIsExact>
MR_LOOP_FN SampledAction sample_action(MR_THREAD const ActionDensity& density, float mean,
                                       float raw, float noise) {
  const float log_deviation = log_deviation_of(density, raw);
  const float before = clamp_mean(density, mean) + mr_exp(log_deviation) * noise;
  const Squashed squashed = squash(before);
  const float log_complement =
      kIsExact ? MR_LOG_FOUR - 2.0f * mr_abs(before) -
                     2.0f * mr_log_of_normal(1.0f + squashed.shrink, 0.0f)
               : mr_log_of_normal(squashed.complement + MR_SQUASH_EPSILON, 0.0f);
  SampledAction sampled;
  sampled.action = squashed.value;
  sampled.density = -0.5f * noise * noise - log_deviation - MR_HALF_LOG_TWO_PI - log_complement;
  return sampled;
}

struct HeadGradient {
  float mean, raw;
};

// alpha_share = alpha / rows.
template <bool kIsExact>
MR_LOOP_FN HeadGradient head_gradient(MR_THREAD const ActionDensity& density, float mean, float raw,
                                      float noise, float action_gradient, float alpha_share) {
  const Squashed squashed_raw = squash(raw);
  const float deviation = mr_exp(density.low + density.half_range * (squashed_raw.value + 1.0f));
  const float scaled_noise = deviation * noise;
  const Squashed squashed = squash(clamp_mean(density, mean) + scaled_noise);
  const float from_density = kIsExact ? 2.0f * squashed.value
                                      : 2.0f * squashed.value * squashed.complement /
                                            (squashed.complement + MR_SQUASH_EPSILON);
  const float inner = action_gradient * squashed.complement + alpha_share * from_density;
  HeadGradient gradient;
  gradient.mean = mr_abs(mean) <= density.mean_limit ? inner : 0.0f;
  gradient.raw =
      (inner * scaled_noise - alpha_share) * density.half_range * squashed_raw.complement;
  return gradient;
}

#undef MR_SQUASH_EPSILON
#undef MR_LOG_FOUR
#undef MR_HALF_LOG_TWO_PI

// heads: mean (actions) | raw (actions), before `bias`. Returns the row's log pi, to all lanes.
template <bool kIsExact, class Stored, class Team>
MR_FN float sample_action_row(MR_THREAD const Team& team, MR_THREAD const ActionDensity& how,
                              MR_DEVICE const float* heads, MR_DEVICE const float* bias,
                              MR_DEVICE const float* noise, MR_DEVICE Stored* action, int actions) {
  float density = 0.0f;
  for (int i = team.lane(); i < actions; i += team.size()) {
    const SampledAction sampled = sample_action<kIsExact>(
        how, heads[i] + bias[i], heads[actions + i] + bias[actions + i], noise[i]);
    action[i] = static_cast<Stored>(sampled.action);
    density += sampled.density;
  }
  return team.sum(density);
}

template <class Team>
MR_FN void draw_noise_row(MR_THREAD const Team& team, RandomSource source, u32 first_normal,
                          MR_DEVICE float* noise, int actions) {
  for (int i = team.lane(); i < actions; i += team.size()) {
    noise[i] = random_normal(source, first_normal + (u32)i);
  }
}

template <bool kIsExact, class Stored, class Team>
MR_FN void action_gradient_row(MR_THREAD const Team& team, MR_THREAD const ActionDensity& density,
                               MR_DEVICE const float* heads, MR_DEVICE const float* bias,
                               MR_DEVICE const float* noise, MR_DEVICE const float* action_gradient,
                               float alpha_share, MR_DEVICE Stored* heads_gradient, int actions) {
  for (int i = team.lane(); i < actions; i += team.size()) {
    const HeadGradient gradient =
        head_gradient<kIsExact>(density, heads[i] + bias[i], heads[actions + i] + bias[actions + i],
                                noise[i], action_gradient[i], alpha_share);
    heads_gradient[i] = static_cast<Stored>(gradient.mean);
    heads_gradient[actions + i] = static_cast<Stored>(gradient.raw);
  }
}

// The sum of a row's deviations, to all lanes.
template <class Team>
MR_FN float deviations_of_row(MR_THREAD const Team& team, MR_THREAD const ActionDensity& density,
                              MR_DEVICE const float* heads, MR_DEVICE const float* bias,
                              int actions) {
  float sum = 0.0f;
  for (int i = team.lane(); i < actions; i += team.size()) {
    sum += mr_exp(log_deviation_of(density, heads[actions + i] + bias[actions + i]));
  }
  return team.sum(sum);
}

}  // namespace millrace

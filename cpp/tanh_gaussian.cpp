#include "tanh_gaussian.h"

#include <vector>

#include "lanes.h"

namespace millrace {
namespace {

constexpr float kMeanLimit = 10.0f;
constexpr float kLogDeviationLow = -5.0f;
constexpr float kLogDeviationHalfRange = 2.5f;
constexpr float kSquashEpsilon = 1e-6f;
constexpr float kHalfLogTwoPi = 0.918938533f;

// tanh without a branch, so that loops over it vectorise; `complement` = 1 - tanh^2, accurate where
// tanh rounds to one.
struct Squashed {
  float value, complement;
};

MR_INLINE Squashed squash(float x) {
  const float shrink = mr_exp(-2.0f * mr_abs(x));
  const float inverse = 1.0f / (1.0f + shrink);
  const float magnitude = (1.0f - shrink) * inverse;
  return {x < 0.0f ? -magnitude : magnitude, 4.0f * shrink * inverse * inverse};
}

// mr_log of a positive normal number, without its branches.
MR_INLINE float log_of_positive(float x) {
  const u32 above = mr_bits(x) - 0x3F3504F3u;
  const int e = (int)above >> 23;
  const float exponent = (float)e;
  const float f = mr_from_bits(mr_bits(x) - ((u32)e << 23)) - 1.0f;
  const float s = f / (2.0f + f);
  const float z = s * s;
  float p = 0.233419433f;
  p = p * z + 0.285503983f;
  p = p * z + 0.400001258f;
  p = p * z + 0.666666687f;
  const float half_square = 0.5f * f * f;
  const float tail = s * (half_square + z * p) + exponent * 3.19461833e-05f;
  return exponent * 0.693115234f + (f - (half_square - tail));
}

MR_INLINE float clamp_mean(float mean) {
  mean = mean > kMeanLimit ? kMeanLimit : mean;
  return mean < -kMeanLimit ? -kMeanLimit : mean;
}

MR_INLINE float log_deviation_of(float raw) {
  return kLogDeviationLow + kLogDeviationHalfRange * (squash(raw).value + 1.0f);
}

// Returns the row's log pi.
MR_CLONES float sample_row(const float* __restrict heads, const float* __restrict bias,
                           const float* __restrict noise, float* __restrict action,
                           float* __restrict densities, int actions) {
  for (int i = 0; i < actions; ++i) {
    const float mean = clamp_mean(heads[i] + bias[i]);
    const float log_deviation = log_deviation_of(heads[actions + i] + bias[actions + i]);
    const Squashed squashed = squash(mean + mr_exp(log_deviation) * noise[i]);
    action[i] = squashed.value;
    densities[i] = -0.5f * noise[i] * noise[i] - log_deviation - kHalfLogTwoPi -
                   log_of_positive(squashed.complement + kSquashEpsilon);
  }
  return lane_sum(densities, actions);
}

MR_CLONES void action_gradient_row(const float* __restrict heads, const float* __restrict bias,
                                   const float* __restrict noise,
                                   const float* __restrict action_gradient, float alpha_share,
                                   float* __restrict heads_gradient, float* __restrict deviations,
                                   int actions) {
  for (int i = 0; i < actions; ++i) {
    const float raw_mean = heads[i] + bias[i];
    const Squashed raw = squash(heads[actions + i] + bias[actions + i]);
    const float deviation = mr_exp(kLogDeviationLow + kLogDeviationHalfRange * (raw.value + 1.0f));
    const float scaled_noise = deviation * noise[i];
    const Squashed squashed = squash(clamp_mean(raw_mean) + scaled_noise);
    const float from_density =
        2.0f * squashed.value * squashed.complement / (squashed.complement + kSquashEpsilon);
    const float inner = action_gradient[i] * squashed.complement + alpha_share * from_density;
    heads_gradient[i] = mr_abs(raw_mean) <= kMeanLimit ? inner : 0.0f;
    heads_gradient[actions + i] =
        (inner * scaled_noise - alpha_share) * kLogDeviationHalfRange * raw.complement;
    deviations[i] = deviation;
  }
}

}  // namespace

void fill_normals(RandomSource source, u32 first, int count, float* out) {
  for (int i = 0; i < count; ++i) out[i] = random_normal(source, first + i);
}

void execute(const SampleActionOp& op, const CpuFrame& frame) {
  const Arguments& arguments = frame.arguments;
  const float* bias = frame.floats(op.bias);
  std::vector<float> densities(op.actions), zeros_or_noise(op.actions, 0.0f);
  for (int r = 0; r < op.rows; ++r) {
    const size_t row = r;
    float* noise =
        op.noise.used() ? frame.floats(op.noise) + row * op.actions : zeros_or_noise.data();
    if (!op.deterministic) {
      fill_normals(random_source(arguments.seed, op.stream, r, arguments.tick), op.first_normal,
                   op.actions, noise);
    }
    const float log_probability =
        sample_row(frame.floats(op.heads) + row * 2 * op.actions, bias, noise,
                   frame.floats(op.action) + row * op.action_stride, densities.data(), op.actions);
    if (op.log_probability.used()) frame.floats(op.log_probability)[r] = log_probability;
  }
}

void execute(const ActionGradientOp& op, const CpuFrame& frame) {
  const float* bias = frame.floats(op.bias);
  const float alpha_share = mr_exp(frame.scalar(op.log_alpha)) / static_cast<float>(op.rows);
  std::vector<float> deviations(op.actions);
  float deviation_sum = 0.0f;
  for (int r = 0; r < op.rows; ++r) {
    const size_t row = r;
    const size_t heads = row * 2 * op.actions;
    action_gradient_row(frame.floats(op.heads) + heads, bias,
                        frame.floats(op.noise) + row * op.actions,
                        frame.floats(op.action_gradient) + row * op.actions, alpha_share,
                        frame.floats(op.heads_gradient) + heads, deviations.data(), op.actions);
    deviation_sum += lane_sum(deviations.data(), op.actions);
  }
  frame.scalar(op.mean_deviation) = deviation_sum / static_cast<float>(op.rows * op.actions);
}

}  // namespace millrace

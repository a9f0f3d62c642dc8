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

// Philox4x32-10 of kLanes counters; one word of every lane together, so that rounds vectorise.
struct PhiloxLanes {
  u32 word[4][kLanes];
};

MR_INLINE void philox_lanes(const PhiloxLanes& counter, u64 key, PhiloxLanes& out) {
  for (int lane = 0; lane < kLanes; ++lane) {
    Philox4 one;
    for (int i = 0; i < 4; ++i) one.word[i] = counter.word[i][lane];
    one = philox4x32_10(one, key);
    for (int i = 0; i < 4; ++i) out.word[i][lane] = one.word[i];
  }
}

// random_normal's Box-Muller.
MR_INLINE void normal_lanes(const u32 (&a)[kLanes], const u32 (&b)[kLanes], float (&out)[kLanes]) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const float u = (float)((int)(a[lane] >> 8) + 1) * 5.9604644775390625e-8f;
    const float angle =
        6.28318530717958648f * ((float)(int)(b[lane] >> 8) * 5.9604644775390625e-8f);
    out[lane] =
        mr_sqrt(-2.0f * mr_log_of_normal(u, 0.0f)) * mr_cos_of(mr_reduce_small_angle(angle));
  }
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
                   mr_log_of_normal(squashed.complement + kSquashEpsilon, 0.0f);
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

// kLanes rows at a time: rows are many, columns may be few.
MR_CLONES void fill_normals(RandomSource source, u32 first, int rows, int columns, float* out) {
  const u32 tick_high = (u32)((source.tick >> 32) & 0xFFFFFFu);
  const u32 last = first + (u32)columns;
  for (int top = 0; top < rows; top += kLanes) {
    for (u32 block = first / 2; 2 * block < last; ++block) {
      PhiloxLanes counter, bits;
      for (int lane = 0; lane < kLanes; ++lane) {
        counter.word[0][lane] = block;
        counter.word[1][lane] = source.environment + (u32)(top + lane);
        counter.word[2][lane] = (u32)source.tick;
        counter.word[3][lane] = (source.stream << 24) | tick_high;
      }
      philox_lanes(counter, source.seed, bits);
      for (u32 half = 0; half < 2; ++half) {
        const u32 index = 2 * block + half;
        if (index < first || index >= last) continue;
        float normal[kLanes];
        normal_lanes(bits.word[2 * half], bits.word[2 * half + 1], normal);
        for (int lane = 0; lane < kLanes && top + lane < rows; ++lane) {
          out[static_cast<size_t>(top + lane) * columns + (index - first)] = normal[lane];
        }
      }
    }
  }
}

void execute(const SampleActionOp& op, const CpuFrame& frame) {
  const Arguments& arguments = frame.arguments;
  const float* bias = frame.floats(op.bias);
  float* noise = frame.floats(op.noise);
  if (!op.deterministic) {
    fill_normals(random_source(arguments.seed, op.stream, 0, arguments.tick), op.first_normal,
                 op.rows, op.actions, noise);
  }
  std::vector<float> densities(op.actions);
  for (int r = 0; r < op.rows; ++r) {
    const size_t row = r;
    const float log_probability =
        sample_row(frame.floats(op.heads) + row * 2 * op.actions, bias, noise + row * op.actions,
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

#include "tanh_gaussian.h"

#include <vector>

#include "lanes.h"
#include "tanh_gaussian_body.h"

namespace millrace {
namespace {

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

// Returns the row's log pi.
MR_CLONES float sample_row(const float* __restrict heads, const float* __restrict bias,
                           const float* __restrict noise, float* __restrict action,
                           float* __restrict densities, int actions) {
  for (int i = 0; i < actions; ++i) {
    const SampledAction sampled =
        sample_action(heads[i] + bias[i], heads[actions + i] + bias[actions + i], noise[i]);
    action[i] = sampled.action;
    densities[i] = sampled.density;
  }
  return lane_sum(densities, actions);
}

MR_CLONES void action_gradient_row(const float* __restrict heads, const float* __restrict bias,
                                   const float* __restrict noise,
                                   const float* __restrict action_gradient, float alpha_share,
                                   float* __restrict heads_gradient, float* __restrict deviations,
                                   int actions) {
  for (int i = 0; i < actions; ++i) {
    const HeadGradient gradient =
        head_gradient(heads[i] + bias[i], heads[actions + i] + bias[actions + i], noise[i],
                      action_gradient[i], alpha_share);
    heads_gradient[i] = gradient.mean;
    heads_gradient[actions + i] = gradient.raw;
    deviations[i] = gradient.deviation;
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
        sample_row(frame.floats(op.heads) + row * op.heads_stride, bias, noise + row * op.actions,
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
    const size_t heads = row * op.heads_stride;
    action_gradient_row(
        frame.floats(op.heads) + heads, bias, frame.floats(op.noise) + row * op.actions,
        frame.floats(op.action_gradient) + row * op.action_gradient_stride, alpha_share,
        frame.floats(op.heads_gradient) + heads, deviations.data(), op.actions);
    deviation_sum += lane_sum(deviations.data(), op.actions);
  }
  frame.scalar(op.mean_deviation) = deviation_sum / static_cast<float>(op.rows * op.actions);
}

}  // namespace millrace

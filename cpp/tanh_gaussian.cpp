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
template <bool kIsExact>
MR_INLINE float sample_row_of(const ActionDensity& density, const float* __restrict heads,
                              const float* __restrict bias, const float* __restrict noise,
                              float* __restrict action, float* __restrict densities, int actions) {
  const ActionDensity how = density;
  for (int i = 0; i < actions; ++i) {
    const SampledAction sampled = sample_action<kIsExact>(
        how, heads[i] + bias[i], heads[actions + i] + bias[actions + i], noise[i]);
    action[i] = sampled.action;
    densities[i] = sampled.density;
  }
  return lane_sum(densities, actions);
}

MR_CLONES float sample_row(const ActionDensity& density, const float* heads, const float* bias,
                           const float* noise, float* action, float* densities, int actions) {
  return density.is_exact
             ? sample_row_of<true>(density, heads, bias, noise, action, densities, actions)
             : sample_row_of<false>(density, heads, bias, noise, action, densities, actions);
}

template <bool kIsExact>
MR_INLINE void gradient_row_of(const ActionDensity& density, const float* __restrict heads,
                               const float* __restrict bias, const float* __restrict noise,
                               const float* __restrict action_gradient, float alpha_share,
                               float* __restrict heads_gradient, int actions) {
  const ActionDensity how = density;
  for (int i = 0; i < actions; ++i) {
    const HeadGradient gradient =
        head_gradient<kIsExact>(how, heads[i] + bias[i], heads[actions + i] + bias[actions + i],
                                noise[i], action_gradient[i], alpha_share);
    heads_gradient[i] = gradient.mean;
    heads_gradient[actions + i] = gradient.raw;
  }
}

MR_CLONES void gradient_row(const ActionDensity& density, const float* heads, const float* bias,
                            const float* noise, const float* action_gradient, float alpha_share,
                            float* heads_gradient, int actions) {
  if (density.is_exact) {
    gradient_row_of<true>(density, heads, bias, noise, action_gradient, alpha_share, heads_gradient,
                          actions);
  } else {
    gradient_row_of<false>(density, heads, bias, noise, action_gradient, alpha_share,
                           heads_gradient, actions);
  }
}

MR_CLONES void deviations_row(const ActionDensity& density, const float* __restrict heads,
                              const float* __restrict bias, float* __restrict deviations,
                              int actions) {
  const ActionDensity how = density;
  for (int i = 0; i < actions; ++i) {
    deviations[i] = mr_exp(log_deviation_of(how, heads[actions + i] + bias[actions + i]));
  }
}

}  // namespace

// kLanes rows at a time: rows are many, columns may be few.
MR_CLONES void fill_normals(RandomSource source, const uint64_t* ticks, u32 first, int rows,
                            int columns, float* out) {
  const u32 last = first + (u32)columns;
  for (int top = 0; top < rows; top += kLanes) {
    for (u32 block = first / 2; 2 * block < last; ++block) {
      PhiloxLanes counter, bits;
      for (int lane = 0; lane < kLanes; ++lane) {
        const bool has_own = ticks != nullptr && top + lane < rows;
        const u64 tick = has_own ? ticks[top + lane] : source.tick;
        counter.word[0][lane] = block;
        counter.word[1][lane] = source.environment + (u32)(top + lane);
        counter.word[2][lane] = (u32)tick;
        counter.word[3][lane] = (source.stream << 24) | (u32)((tick >> 32) & 0xFFFFFFu);
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
    const uint64_t* drawn_at = op.drawn_at.used() ? frame.counters(op.drawn_at) : nullptr;
    fill_normals(random_source(arguments.seed, op.stream, 0, arguments.tick), drawn_at,
                 op.first_normal, op.rows, op.actions, noise);
  }
  std::vector<float> densities(op.actions);
  for (int r = 0; r < op.rows; ++r) {
    const size_t row = r;
    const float log_probability = sample_row(
        op.density, frame.floats(op.heads) + row * op.heads_stride, bias, noise + row * op.actions,
        frame.floats(op.action) + row * op.action_stride, densities.data(), op.actions);
    if (op.log_probability.used()) frame.floats(op.log_probability)[r] = log_probability;
  }
}

void execute(const ActionGradientOp& op, const CpuFrame& frame) {
  const float* bias = frame.floats(op.bias);
  const float alpha_share = mr_exp(frame.scalar(op.log_alpha)) / static_cast<float>(op.rows);
  for (int r = 0; r < op.rows; ++r) {
    const size_t row = r;
    const size_t heads = row * op.heads_stride;
    gradient_row(op.density, frame.floats(op.heads) + heads, bias,
                 frame.floats(op.noise) + row * op.actions,
                 frame.floats(op.action_gradient) + row * op.action_gradient_stride, alpha_share,
                 frame.floats(op.heads_gradient) + heads, op.actions);
  }
}

void execute(const MeanDeviationOp& op, const CpuFrame& frame) {
  std::vector<float> deviations(op.actions);
  float deviation_sum = 0.0f;
  for (int r = 0; r < op.rows; ++r) {
    const float* heads = frame.floats(op.heads) + static_cast<size_t>(r) * op.heads_stride;
    deviations_row(op.density, heads, frame.floats(op.bias), deviations.data(), op.actions);
    deviation_sum += lane_sum(deviations.data(), op.actions);
  }
  frame.scalar(op.mean_deviation) = deviation_sum / static_cast<float>(op.rows * op.actions);
}

}  // namespace millrace

// Gradient norm with the finite verdict, AdamW with the moving target in one pass over the
// parameters (adamw_body.h), and the temperature's step.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

namespace millrace {

// 1 - decay^count, as near 0 as the decay is to 1: where the power would have lost it, by the
// series of 1 - exp(x), to within 1e-8 of the value.
inline float one_minus_power(float log_decay, u64 count) {
  const float x = log_decay * (float)count;
  if (x < -0.5f) return 1.0f - mr_exp(x);
  float p = 2.4801587e-5f;  // 1/8!, 1/7!, ...
  p = p * x + 1.9841270e-4f;
  p = p * x + 1.3888889e-3f;
  p = p * x + 8.3333333e-3f;
  p = p * x + 4.1666667e-2f;
  p = p * x + 1.6666667e-1f;
  p = p * x + 0.5f;
  return -(x + x * x * p);
}

// adamw_step() without double.
inline AdamWStep adamw_step(constant const AdamWDecays& decays, float learning_rate, u64 count) {
  AdamWStep step;
  step.gradient_scale = 1.0f;
  step.decay = 1.0f - learning_rate * decays.constants.weight_decay;
  step.rate = learning_rate / one_minus_power(decays.log_beta1, count);
  step.inverse_root = 1.0f / mr_sqrt(one_minus_power(decays.log_beta2, count));
  step.beta1 = decays.constants.beta1;
  step.beta2 = decays.constants.beta2;
  step.target_rate = 0.0f;
  return step;
}

}  // namespace millrace

kernel void sum_squares(constant const SumSquaresArgs& args [[buffer(0)]],
                        uint3 group [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_index_in_threadgroup]],
                        threadgroup float* room [[threadgroup(0)]]) {
  float sum = 0.0f;
  for (u64 i = (u64)group.x * kPartThreads + thread_index; i < args.count;
       i += kParts * kPartThreads) {
    sum += args.values[i] * args.values[i];
  }
  sum = threadgroup_sum(sum, room, thread_index, kPartThreads);
  if (thread_index == 0) args.parts[group.x] = sum;
}

kernel void finish_norm(constant const FinishNormArgs& args [[buffer(0)]],
                        uint3 group [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_index_in_threadgroup]],
                        threadgroup float* room [[threadgroup(0)]]) {
  const float sum = sum_of_parts(args.parts + group.x * kParts, room, thread_index);
  if (thread_index != 0) return;
  const float norm = mr_sqrt(sum);
  if (args.opens) *args.finite = 1.0f;
  if (!mr_isfinite(norm) || !mr_isfinite(*args.loss)) *args.finite = 0.0f;
  *args.norm = norm;
  *args.clip = gradient_clip(args.max_norm, norm);
}

// What all parameters share, once: the count of steps must move exactly once.
kernel void begin_step(constant const BeginStepArgs& args [[buffer(0)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint thread_index [[thread_index_in_threadgroup]]) {
  if (group.x + thread_index != 0 || *args.finite != 1.0f) return;
  const Arguments arguments = *args.arguments;
  const u64 count = *args.count + 1;
  *args.count = count;
  AdamWStep step = adamw_step(args.decays, arguments.learning_rate(args.rate), count);
  step.gradient_scale = *args.clip;
  step.target_rate = arguments.target_rate;
  *args.step = step;
}

kernel void adamw(constant const AdamWArgs& args [[buffer(0)]],
                  uint3 group [[threadgroup_position_in_grid]],
                  uint thread_index [[thread_index_in_threadgroup]]) {
  const u64 i = (u64)group.x * kElementThreads + thread_index;
  if (i >= args.count || *args.finite != 1.0f) return;
  const AdamWStep step = *args.step;
  float first = args.first_moment[i], second = args.second_moment[i];
  const float parameter =
      adamw_element(step, args.gradient[i], args.parameters[i], &first, &second);
  args.first_moment[i] = first;
  args.second_moment[i] = second;
  args.parameters[i] = parameter;
  if (args.target == nullptr) return;
  args.target[i] += step.target_rate * (parameter - args.target[i]);
}

kernel void step_temperature(constant const TemperatureArgs& args [[buffer(0)]],
                             uint3 group [[threadgroup_position_in_grid]],
                             uint thread_index [[thread_index_in_threadgroup]],
                             threadgroup float* room [[threadgroup(0)]]) {
  float sum = 0.0f;
  for (int r = (int)(group.x + thread_index); r < args.rows; r += kLossThreads) {
    sum += args.log_probability[r];
  }
  sum = threadgroup_sum(sum, room, thread_index, kLossThreads);
  if (thread_index != 0) return;
  const float alpha = mr_exp(*args.log_alpha);
  const float loss = -alpha * (sum / (float)args.rows + args.target_entropy);
  *args.alpha = alpha;
  *args.loss = loss;
  *args.gradient = loss;  // d(-alpha x)/d(log alpha) = -alpha x
  if (!mr_isfinite(loss)) *args.finite = 0.0f;
  if (*args.finite != 1.0f) return;
  const u64 count = *args.step + 1;
  *args.step = count;
  const AdamWStep step = adamw_step(args.decays, args.arguments->alpha_learning_rate, count);
  float first = *args.first_moment, second = *args.second_moment;
  *args.log_alpha = adamw_element(step, loss, *args.log_alpha, &first, &second);
  *args.first_moment = first;
  *args.second_moment = second;
}

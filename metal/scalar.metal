// Scalar twin critics (scalar_critic_body.h): a thread computes a row. The losses are one
// threadgroup each, which walks over all rows: a row is a few numbers, and a second launch would
// cost more than the walk.
#include "simd_team.h"
//
#include "scalar_critic_body.h"

using namespace metal;
using namespace millrace;

namespace millrace {

// Where a row's values and their gradients begin.
inline u64 first_value(constant const ScalarValues& values, int r) {
  return (u64)r * (u64)values.groups * (u64)values.stride;
}

inline float scalar_value(constant const ScalarValues& values, int r, int group) {
  return values.values[first_value(values, r) + group * values.stride] +
         values.bias[group * values.stride];
}

inline int least_value(constant const ScalarValues& values, int r) {
  return least_group(values.values + first_value(values, r), values.bias, values.groups,
                     values.stride);
}

}  // namespace millrace

kernel void scalar_targets(constant const ScalarTargetArgs& args [[buffer(0)]],
                           uint3 group [[threadgroup_position_in_grid]],
                           uint thread_index [[thread_index_in_threadgroup]]) {
  const int r = (int)(group.x * kElementThreads + thread_index);
  if (r >= args.next.rows) return;
  const Arguments arguments = *args.arguments;
  const RewardSource reward = args.reward;
  device const float* row = arguments.rows + (u64)(r % reward.source_rows) * arguments.row_stride;
  const float soft_value = scalar_value(args.next, r, least_value(args.next, r)) -
                           mr_exp(*reward.log_alpha) * reward.log_probability[r];
  args.target[r] =
      soft_target(row[reward.reward_column] * arguments.reward_scale, row[reward.done_column],
                  row[reward.truncated_column], reward.gamma, soft_value);
}

kernel void scalar_critic_loss(constant const ScalarCriticLossArgs& args [[buffer(0)]],
                               uint3 group [[threadgroup_position_in_grid]],
                               uint thread_index [[thread_index_in_threadgroup]],
                               threadgroup float* room [[threadgroup(0)]]) {
  const float share = 1.0f / (float)args.now.rows;
  float loss = 0.0f, value_sum = 0.0f, top = -mr_infinity(), bottom = -mr_infinity();
  for (int r = (int)(group.x + thread_index); r < args.now.rows; r += kLossThreads) {
    for (int g = 0; g < args.now.groups; ++g) {
      const float value = scalar_value(args.now, r, g);
      const float error = value - args.target[r];
      loss += error * error;
      args.gradient[first_value(args.now, r) + g * args.now.stride] = 2.0f * share * error;
      value_sum += value;
      top = mr_max(value, top);
      bottom = mr_max(-value, bottom);
    }
  }
  loss = threadgroup_sum(loss, room, thread_index, kLossThreads);
  value_sum = threadgroup_sum(value_sum, room, thread_index, kLossThreads);
  top = threadgroup_maximum(top, room, thread_index, kLossThreads);
  bottom = threadgroup_maximum(bottom, room, thread_index, kLossThreads);
  if (thread_index != 0) return;
  *args.loss = loss * share;
  *args.value_mean = value_sum * share / (float)args.now.groups;
  *args.value_max = top;
  *args.value_min = -bottom;
}

kernel void scalar_actor_loss(constant const ScalarActorLossArgs& args [[buffer(0)]],
                              uint3 group [[threadgroup_position_in_grid]],
                              uint thread_index [[thread_index_in_threadgroup]],
                              threadgroup float* room [[threadgroup(0)]]) {
  const float share = 1.0f / (float)args.now.rows;
  float value_sum = 0.0f, log_probability_sum = 0.0f;
  for (int r = (int)(group.x + thread_index); r < args.now.rows; r += kLossThreads) {
    const int least = least_value(args.now, r);
    value_sum += scalar_value(args.now, r, least);
    log_probability_sum += args.log_probability[r];
    for (int g = 0; g < args.now.groups; ++g) {
      args.gradient[first_value(args.now, r) + g * args.now.stride] = g == least ? -share : 0.0f;
    }
  }
  value_sum = threadgroup_sum(value_sum, room, thread_index, kLossThreads);
  log_probability_sum = threadgroup_sum(log_probability_sum, room, thread_index, kLossThreads);
  if (thread_index != 0) return;
  *args.loss = (mr_exp(*args.log_alpha) * log_probability_sum - value_sum) * share;
  *args.entropy = -log_probability_sum * share;
}

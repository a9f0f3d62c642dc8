// Scalar twin critics (scalar_critic_body.h): a simdgroup computes a row, of all critics, from the
// hidden layer to its gradient. The losses' numbers are added up by one threadgroup, which walks
// over what the rows left: a row is a few numbers then.
#include "simd_team.h"
//
#include "scalar_critic_body.h"

using namespace metal;
using namespace millrace;

namespace millrace {

inline u64 line_of(constant const ScalarHeadArgs& head, int r, int g) {
  return (u64)r * (u64)head.groups + (u64)g;
}

// To all lanes.
inline float scalar_value(const SimdTeam team, constant const ScalarHeadArgs& head, int r, int g) {
  device const float* hidden = head.hidden + line_of(head, r, g) * (u64)head.width;
  device const float* weight = head.weight + (u64)g * head.weight_distance;
  float sum = 0.0f;
  for (int i = team.lane(); i < head.width; i += team.size()) sum += hidden[i] * weight[i];
  return team.sum(sum) + head.bias[(u64)g * head.bias_distance];
}

inline LeastValue least_value(const SimdTeam team, constant const ScalarHeadArgs& head, int r) {
  LeastValue least = {0.0f, 0};
  for (int g = 0; g < head.groups; ++g) least.see(scalar_value(team, head, r, g), g);
  return least;
}

inline void pass_back(const SimdTeam team, constant const ScalarHeadArgs& head, int r, int g,
                      float value_gradient) {
  const u64 first = line_of(head, r, g) * (u64)head.width;
  device const float* weight = head.weight + (u64)g * head.weight_distance;
  for (int i = team.lane(); i < head.width; i += team.size()) {
    const bool is_cut = head.is_relu && !(head.hidden[first + (u64)i] > 0.0f);
    head.hidden_gradient[first + (u64)i] = is_cut ? 0.0f : value_gradient * weight[i];
  }
}

inline int own_row(uint3 group, uint thread_index) {
  return (int)(group.x * kRowsOfAGroup + thread_index / kSimdWidth);
}

}  // namespace millrace

kernel void scalar_targets(constant const ScalarTargetArgs& args [[buffer(0)]],
                           uint3 group [[threadgroup_position_in_grid]],
                           uint thread_index [[thread_index_in_threadgroup]]) {
  const SimdTeam team = simd_team(thread_index);
  const int r = own_row(group, thread_index);
  if (r >= args.next.rows) return;  // whole simdgroups
  const LeastValue least = least_value(team, args.next, r);
  if (!team.leads()) return;
  const Arguments arguments = *args.arguments;
  const RewardSource reward = args.reward;
  device const float* row = arguments.rows + (u64)(r % reward.source_rows) * arguments.row_stride;
  const float soft_value = least.value - mr_exp(*reward.log_alpha) * reward.log_probability[r];
  args.target[r] =
      soft_target(row[reward.reward_column] * arguments.reward_scale, row[reward.done_column],
                  row[reward.truncated_column], reward.gamma, soft_value);
}

kernel void scalar_critic_gradients(constant const ScalarCriticGradientArgs& args [[buffer(0)]],
                                    uint3 group [[threadgroup_position_in_grid]],
                                    uint thread_index [[thread_index_in_threadgroup]]) {
  const SimdTeam team = simd_team(thread_index);
  const int r = own_row(group, thread_index);
  if (r >= args.head.rows) return;  // whole simdgroups
  const float share = 2.0f / (float)args.head.rows;
  for (int g = 0; g < args.head.groups; ++g) {
    const float value = scalar_value(team, args.head, r, g);
    const float gradient = share * (value - args.target[r]);
    pass_back(team, args.head, r, g, gradient);
    if (!team.leads()) continue;
    const u64 line = line_of(args.head, r, g);
    args.values[line] = value;
    args.values_gradient[line * args.head.bias_distance] = gradient;
  }
}

kernel void scalar_critic_loss(constant const ScalarCriticLossArgs& args [[buffer(0)]],
                               uint3 group [[threadgroup_position_in_grid]],
                               uint thread_index [[thread_index_in_threadgroup]],
                               threadgroup float* room [[threadgroup(0)]]) {
  const float share = 1.0f / (float)args.rows;
  float loss = 0.0f, value_sum = 0.0f, top = -mr_infinity(), bottom = -mr_infinity();
  for (int r = (int)(group.x + thread_index); r < args.rows; r += kLossThreads) {
    for (int g = 0; g < args.groups; ++g) {
      const float value = args.values[(u64)r * (u64)args.groups + (u64)g];
      const float error = value - args.target[r];
      loss += error * error;
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
  *args.value_mean = value_sum * share / (float)args.groups;
  *args.value_max = top;
  *args.value_min = -bottom;
}

kernel void scalar_actor_gradients(constant const ScalarActorGradientArgs& args [[buffer(0)]],
                                   uint3 group [[threadgroup_position_in_grid]],
                                   uint thread_index [[thread_index_in_threadgroup]]) {
  const SimdTeam team = simd_team(thread_index);
  const int r = own_row(group, thread_index);
  if (r >= args.head.rows) return;  // whole simdgroups
  const float share = 1.0f / (float)args.head.rows;
  const LeastValue least = least_value(team, args.head, r);
  for (int g = 0; g < args.head.groups; ++g) {
    pass_back(team, args.head, r, g, g == least.group ? -share : 0.0f);
  }
  if (team.leads()) args.least_values[r] = least.value;
}

kernel void scalar_actor_loss(constant const ScalarActorLossArgs& args [[buffer(0)]],
                              uint3 group [[threadgroup_position_in_grid]],
                              uint thread_index [[thread_index_in_threadgroup]],
                              threadgroup float* room [[threadgroup(0)]]) {
  const float share = 1.0f / (float)args.rows;
  float value_sum = 0.0f, log_probability_sum = 0.0f;
  for (int r = (int)(group.x + thread_index); r < args.rows; r += kLossThreads) {
    value_sum += args.least_values[r];
    log_probability_sum += args.log_probability[r];
  }
  value_sum = threadgroup_sum(value_sum, room, thread_index, kLossThreads);
  log_probability_sum = threadgroup_sum(log_probability_sum, room, thread_index, kLossThreads);
  if (thread_index != 0) return;
  *args.loss = (mr_exp(*args.log_alpha) * log_probability_sum - value_sum) * share;
  *args.entropy = -log_probability_sum * share;
}

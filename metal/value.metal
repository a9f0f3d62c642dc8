// Categorical critics: a simdgroup computes one row of one group; what is asked of the smallest
// value, all groups of a row. Probabilities are computed again where they are needed: cheaper than
// to keep those of any number of atoms.
#include "simd_team.h"
//
#include "scalar_critic_body.h"

using namespace metal;
using namespace millrace;

namespace millrace {

MR_CONSTEXPR float kLogProbabilityFloor = -30.0f;
MR_CONSTEXPR float kMassUnits = 1073741824.0f;  // 2^30

// One row's logits of one group.
struct Categorical {
  device const float* logits;
  device const float* bias;
  float top;      // of logit + bias
  float inverse;  // of the sum of exp(shifted)
  float log_sum;

  float shifted(int i) const { return logits[i] + bias[i] - top; }
  float probability(int i) const { return mr_exp(shifted(i)) * inverse; }
};

inline Categorical categorical_row(SimdTeam team, constant const CategoricalValues& values, int row,
                                   int group) {
  Categorical result;
  result.logits = values.logits + ((u64)row * values.groups + group) * values.stride;
  result.bias = values.bias + group * values.stride;
  float top = -mr_infinity(), sum = 0.0f;
  for (int i = team.lane(); i < values.support.atoms; i += team.size()) {
    top = mr_max(result.logits[i] + result.bias[i], top);
  }
  result.top = team.maximum(top);
  for (int i = team.lane(); i < values.support.atoms; i += team.size()) {
    sum += mr_exp(result.shifted(i));
  }
  sum = team.sum(sum);
  result.inverse = 1.0f / sum;
  result.log_sum = mr_log(sum);
  return result;
}

inline float atom_value(Support support, int i) {
  return support.v_min + (float)i * support.spacing();
}

// Sum of p z, to all lanes.
inline float expected_value(SimdTeam team, Support support, thread const Categorical& row) {
  float value = 0.0f;
  for (int i = team.lane(); i < support.atoms; i += team.size()) {
    value += row.probability(i) * atom_value(support, i);
  }
  return team.sum(value);
}

// Of a row's groups the one with the smallest expected value, the first of several.
struct SmallestValue {
  int group;
  float value;
  Categorical row;  // of that group
};

inline SmallestValue smallest_of(SimdTeam team, constant const CategoricalValues& values, int row) {
  SmallestValue smallest = {};
  for (int group = 0; group < values.groups; ++group) {
    const Categorical own = categorical_row(team, values, row, group);
    const float value = expected_value(team, values.support, own);
    if (group > 0 && !(value < smallest.value)) continue;
    smallest.group = group;
    smallest.value = value;
    smallest.row = own;
  }
  return smallest;
}

// What a row's target is made of, the same for all groups.
struct TargetMove {
  float reward, discount;
};

inline TargetMove target_move(constant const ProjectTargetArgs& args, int r) {
  const Arguments arguments = *args.arguments;
  const RewardSource from = args.reward;
  device const float* row = arguments.rows + (u64)(r % from.source_rows) * arguments.row_stride;
  const float reward = row[from.reward_column] * arguments.reward_scale;
  // With a value of 1 behind it, nothing of a reward of 0 is left but the discount.
  const float discount =
      soft_target(0.0f, row[from.done_column], row[from.truncated_column], from.gamma, 1.0f);
  TargetMove move;
  // reward - reward is NaN for an infinite reward, which the clamp to the support would hide.
  move.reward =
      reward - discount * mr_exp(*from.log_alpha) * from.log_probability[r] + (reward - reward);
  move.discount = discount;
  return move;
}

// Where atom i lands, in atoms: clamped before it is split, so that both neighbours exist; NaN
// stays NaN.
inline float landing_position(Support support, TargetMove move, int i) {
  const float last = (float)(support.atoms - 1);
  float position =
      (move.reward + move.discount * atom_value(support, i) - support.v_min) / support.spacing();
  position = position < 0.0f ? 0.0f : position;
  return position > last ? last : position;
}

inline void add_mass(threadgroup atomic_uint* to, u32 mass) {
  atomic_fetch_add_explicit(to, mass, memory_order_relaxed);
}

// Each atom's mass goes to the two atoms beside where it lands, added up in units of 2^-30: whole
// numbers, so that the order in which lanes add does not matter. What is not a number makes atoms 0
// and 1 none, so that the loss shows it. The lanes share `room`, of atoms + 1.
inline void project_row(SimdTeam team, Support support, thread const Categorical& row,
                        TargetMove move, threadgroup atomic_uint* room, device float* target) {
  threadgroup atomic_uint* has_no_number = room + support.atoms;
  simdgroup_barrier(mem_flags::mem_threadgroup);  // the row before has been read
  for (int i = team.lane(); i <= support.atoms; i += team.size()) {
    atomic_store_explicit(room + i, 0u, memory_order_relaxed);
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = team.lane(); i < support.atoms; i += team.size()) {
    const float position = landing_position(support, move, i);
    const float mass = row.probability(i);
    if (!(position >= 0.0f && mass >= 0.0f)) {
      add_mass(has_no_number, 1);
      continue;
    }
    const int lower = (int)position;
    const u32 whole = (u32)(mass * kMassUnits + 0.5f);
    const u32 to_upper = (u32)(mass * (position - (float)lower) * kMassUnits + 0.5f);
    add_mass(room + lower, whole - to_upper);
    if (to_upper > 0) add_mass(room + lower + 1, to_upper);
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  const bool is_number = atomic_load_explicit(has_no_number, memory_order_relaxed) == 0;
  for (int i = team.lane(); i < support.atoms; i += team.size()) {
    const float none = i > 1 ? 0.0f : mr_nan();
    const float mass = (float)atomic_load_explicit(room + i, memory_order_relaxed);
    target[i] = is_number ? mass * (1.0f / kMassUnits) : none;
  }
}

// Cross entropy of one row, to all lanes; its gradient by the logits, times `share`.
inline float cross_entropy_row(SimdTeam team, thread const Categorical& row,
                               device const float* target, float share, device float* gradient,
                               int atoms) {
  float loss = 0.0f, weight_sum = 0.0f;
  for (int i = team.lane(); i < atoms; i += team.size()) {
    const float log_probability = row.shifted(i) - row.log_sum;
    const bool is_clamped = log_probability < kLogProbabilityFloor;
    loss -= target[i] * (is_clamped ? kLogProbabilityFloor : log_probability);
    weight_sum += is_clamped ? 0.0f : target[i];  // the clamp passes no gradient
  }
  weight_sum = team.sum(weight_sum);
  for (int i = team.lane(); i < atoms; i += team.size()) {
    const bool is_clamped = row.shifted(i) - row.log_sum < kLogProbabilityFloor;
    const float weight = is_clamped ? 0.0f : target[i];
    gradient[i] = share * (row.probability(i) * weight_sum - weight);
  }
  return team.sum(loss);
}

// gradient = -share * dQ/dlogits.
inline void value_gradient_row(SimdTeam team, Support support, thread const Categorical& row,
                               float expected, float share, device float* gradient) {
  for (int i = team.lane(); i < support.atoms; i += team.size()) {
    gradient[i] = -share * row.probability(i) * (atom_value(support, i) - expected);
  }
}

}  // namespace millrace

// The room: atoms + 1 numbers for each simdgroup.
kernel void project_targets(constant const ProjectTargetArgs& args [[buffer(0)]],
                            uint3 group [[threadgroup_position_in_grid]],
                            uint thread_index [[thread_index_in_threadgroup]],
                            threadgroup float* room [[threadgroup(0)]]) {
  const SimdTeam team = simd_team(thread_index);
  const Support support = args.next.support;
  const int simdgroup = (int)(thread_index / kSimdWidth);
  const int r = (int)group.x * args.rows_of_a_group + simdgroup;
  if (r >= args.next.rows) return;  // whole simdgroups
  threadgroup atomic_uint* own = (threadgroup atomic_uint*)room + simdgroup * (support.atoms + 1);
  const TargetMove move = target_move(args, r);
  device float* target = args.target + (u64)r * args.next.groups * args.next.stride;
  SmallestValue smallest = {};
  if (args.takes_smallest) smallest = smallest_of(team, args.next, r);
  for (int g = 0; g < args.next.groups; ++g) {
    Categorical row = smallest.row;
    if (!args.takes_smallest) row = categorical_row(team, args.next, r, g);
    project_row(team, support, row, move, own, target + g * args.next.stride);
  }
}

kernel void critic_losses(constant const CriticLossArgs& args [[buffer(0)]],
                          uint3 group [[threadgroup_position_in_grid]],
                          uint thread_index [[thread_index_in_threadgroup]],
                          threadgroup float* room [[threadgroup(0)]]) {
  const SimdTeam team = simd_team(thread_index);
  const Support support = args.now.support;
  float loss = 0.0f, value_sum = 0.0f;
  float top = support.v_min, bottom = -support.v_max;
  for (int r = first_row_of_part(group.x, thread_index); r < args.now.rows;
       r += kRowsBetweenParts) {
    for (int g = 0; g < args.now.groups; ++g) {
      const u64 first = ((u64)r * args.now.groups + g) * args.now.stride;
      const Categorical row = categorical_row(team, args.now, r, g);
      loss += cross_entropy_row(team, row, args.target + first, args.share, args.gradient + first,
                                support.atoms);
      const float value = expected_value(team, support, row);
      value_sum += value;
      top = mr_max(value, top);
      bottom = mr_max(-value, bottom);
    }
  }
  loss = threadgroup_sum(team.leads() ? loss : 0.0f, room, thread_index, kPartThreads);
  value_sum = threadgroup_sum(team.leads() ? value_sum : 0.0f, room, thread_index, kPartThreads);
  top = threadgroup_maximum(top, room, thread_index, kPartThreads);
  bottom = threadgroup_maximum(bottom, room, thread_index, kPartThreads);
  if (thread_index != 0) return;
  args.parts[group.x] = loss;
  args.parts[kParts + group.x] = value_sum;
  args.parts[2 * kParts + group.x] = top;
  args.parts[3 * kParts + group.x] = bottom;
}

kernel void finish_critic_loss(constant const FinishCriticLossArgs& args [[buffer(0)]],
                               uint3 group [[threadgroup_position_in_grid]],
                               uint thread_index [[thread_index_in_threadgroup]],
                               threadgroup float* room [[threadgroup(0)]]) {
  device const float* parts = args.parts + group.x * kParts;
  const float loss = sum_of_parts(parts, room, thread_index);
  const float values = sum_of_parts(parts + kParts, room, thread_index);
  const float top = maximum_of_parts(parts + 2 * kParts, room, thread_index);
  const float bottom = maximum_of_parts(parts + 3 * kParts, room, thread_index);
  if (thread_index != 0) return;
  *args.loss = loss * args.share;
  *args.value_mean = values * args.value_share;
  *args.value_max = top;
  *args.value_min = -bottom;
}

kernel void actor_losses(constant const ActorLossArgs& args [[buffer(0)]],
                         uint3 group [[threadgroup_position_in_grid]],
                         uint thread_index [[thread_index_in_threadgroup]],
                         threadgroup float* room [[threadgroup(0)]]) {
  const SimdTeam team = simd_team(thread_index);
  const Support support = args.now.support;
  const int groups = args.now.groups;
  const float row_share = 1.0f / (float)args.now.rows;
  const float share = args.takes_smallest ? row_share : row_share / (float)groups;
  float value_sum = 0.0f, log_probability_sum = 0.0f;
  for (int r = first_row_of_part(group.x, thread_index); r < args.now.rows;
       r += kRowsBetweenParts) {
    SmallestValue smallest = {};
    if (args.takes_smallest) smallest = smallest_of(team, args.now, r);
    for (int g = 0; g < groups; ++g) {
      device float* gradient = args.gradient + ((u64)r * groups + g) * args.now.stride;
      if (args.takes_smallest && g != smallest.group) {
        for (int i = team.lane(); i < support.atoms; i += team.size()) gradient[i] = 0.0f;
        continue;
      }
      Categorical row = smallest.row;
      if (!args.takes_smallest) row = categorical_row(team, args.now, r, g);
      const float value = expected_value(team, support, row);
      value_gradient_row(team, support, row, value, share, gradient);
      value_sum += value;
    }
    log_probability_sum += args.log_probability[r];
  }
  value_sum = threadgroup_sum(team.leads() ? value_sum : 0.0f, room, thread_index, kPartThreads);
  log_probability_sum =
      threadgroup_sum(team.leads() ? log_probability_sum : 0.0f, room, thread_index, kPartThreads);
  if (thread_index != 0) return;
  args.parts[group.x] = value_sum;
  args.parts[kParts + group.x] = log_probability_sum;
}

kernel void finish_actor_loss(constant const FinishActorLossArgs& args [[buffer(0)]],
                              uint3 group [[threadgroup_position_in_grid]],
                              uint thread_index [[thread_index_in_threadgroup]],
                              threadgroup float* room [[threadgroup(0)]]) {
  device const float* parts = args.parts + group.x * kParts;
  const float values = sum_of_parts(parts, room, thread_index);
  const float logs = sum_of_parts(parts + kParts, room, thread_index);
  if (thread_index != 0) return;
  *args.loss = mr_exp(*args.log_alpha) * logs * args.share - values * args.value_share;
  *args.entropy = -logs * args.share;
}

// One row of a categorical critic's group (program.h, Support), as a team of lanes computes it:
// projection, cross entropy with its gradient, expected value with its gradient. Each lane keeps
// its atoms. Freestanding.
#pragma once

#include "elementary.h"
#include "own_columns_body.h"
#include "support.h"

namespace millrace {

#define MR_LOG_PROBABILITY_FLOOR -30.0f
#define MR_MASS_UNITS 1073741824.0f  // 2^30

// A lane's atoms; log_sum is the log of the sum of exp(shifted) over all.
template <int kOwn>
struct Softmax {
  float shifted[kOwn];  // logit + bias - the largest of them
  float probabilities[kOwn];
  float log_sum;
};

template <int kOwn, class Team>
MR_LOOP_FN Softmax<kOwn> softmax_row(const Team& team, const float* logits, const float* bias,
                                     int atoms) {
  Softmax<kOwn> row;
  each_own_column<kOwn>(team, atoms, [&](int own, int i) { row.shifted[own] = logits[i]; });
  float top = -mr_infinity();
  each_own_column<kOwn>(team, atoms, [&](int own, int i) {
    row.shifted[own] += bias[i];
    top = mr_max(row.shifted[own], top);
  });
  top = team.maximum(top);
  float sum = 0.0f;
  each_own_column<kOwn>(team, atoms, [&](int own, int) {
    row.shifted[own] -= top;
    row.probabilities[own] = mr_fast_exp(row.shifted[own]);
    sum += row.probabilities[own];
  });
  sum = team.sum(sum);
  const float inverse = 1.0f / sum;
  each_own_column<kOwn>(team, atoms, [&](int own, int) { row.probabilities[own] *= inverse; });
  row.log_sum = mr_log(sum);
  return row;
}

// Where atom i lands, in atoms: clamped before it is split, so that both neighbours exist; NaN
// stays NaN.
MR_FN float landing_position(const Support& support, float reward, float discount, int i) {
  const float last = (float)(support.atoms - 1);
  const float z = support.v_min + (float)i * support.spacing();
  float position = (reward + discount * z - support.v_min) / support.spacing();
  position = position < 0.0f ? 0.0f : position;
  return position > last ? last : position;
}

// Floats of the room that project_row needs per team.
MR_FN int projection_room(int atoms) { return atoms + 1; }

// Each atom's mass goes to the two atoms beside where it lands, added up in units of 2^-30: whole
// numbers, so that the order in which lanes add does not matter. What is not a number makes atoms 0
// and 1 none, so that the loss shows it. The lanes share `room`.
template <int kOwn, class Team>
MR_LOOP_FN void project_row(const Team& team, const Support& support,
                            const float (&probabilities)[kOwn], float reward, float discount,
                            u32* room, float* target) {
  const int atoms = support.atoms;
  u32* const has_no_number = room + atoms;
  team.sync();  // the row before has been read
  each_own_column<kOwn>(team, atoms, [&](int, int i) { room[i] = 0; });
  if (team.leads()) *has_no_number = 0;
  team.sync();
  each_own_column<kOwn>(team, atoms, [&](int own, int i) {
    const float position = landing_position(support, reward, discount, i);
    const float mass = probabilities[own];
    if (!(position >= 0.0f && mass >= 0.0f)) {
      team.add(has_no_number, 1);
      return;
    }
    const int lower = (int)position;
    const u32 whole = (u32)(mass * MR_MASS_UNITS + 0.5f);
    const u32 to_upper = (u32)(mass * (position - (float)lower) * MR_MASS_UNITS + 0.5f);
    team.add(room + lower, whole - to_upper);
    if (to_upper > 0) team.add(room + lower + 1, to_upper);
  });
  team.sync();
  const bool is_number = *has_no_number == 0;
  each_own_column<kOwn>(team, atoms, [&](int, int i) {
    const float none = i > 1 ? 0.0f : mr_infinity() - mr_infinity();
    target[i] = is_number ? (float)room[i] * (1.0f / MR_MASS_UNITS) : none;
  });
}

// Sum of p z, to all lanes.
template <int kOwn, class Team>
MR_LOOP_FN float expected_value_row(const Team& team, const Support& support,
                                    const float (&probabilities)[kOwn]) {
  float value = 0.0f;
  each_own_column<kOwn>(team, support.atoms, [&](int own, int i) {
    value += probabilities[own] * (support.v_min + (float)i * support.spacing());
  });
  return team.sum(value);
}

// Cross entropy of one row, to all lanes; its gradient by the logits, times `share`.
template <int kOwn, class Stored, class Team>
MR_LOOP_FN float cross_entropy_row(const Team& team, const Softmax<kOwn>& row, const float* target,
                                   float share, Stored* gradient, int atoms) {
  float weights[kOwn];
  float loss = 0.0f, weight_sum = 0.0f;
  each_own_column<kOwn>(team, atoms, [&](int own, int i) { weights[own] = target[i]; });
  each_own_column<kOwn>(team, atoms, [&](int own, int) {
    const float log_probability = row.shifted[own] - row.log_sum;
    const bool is_clamped = log_probability < MR_LOG_PROBABILITY_FLOOR;
    loss -= weights[own] * (is_clamped ? MR_LOG_PROBABILITY_FLOOR : log_probability);
    if (is_clamped) weights[own] = 0.0f;  // the clamp passes no gradient
    weight_sum += weights[own];
  });
  weight_sum = team.sum(weight_sum);
  each_own_column<kOwn>(team, atoms, [&](int own, int i) {
    gradient[i] = static_cast<Stored>(share * (row.probabilities[own] * weight_sum - weights[own]));
  });
  return team.sum(loss);
}

// gradient = -share * dQ/dlogits.
template <int kOwn, class Stored, class Team>
MR_LOOP_FN void value_gradient_row(const Team& team, const Support& support,
                                   const float (&probabilities)[kOwn], float expected, float share,
                                   Stored* gradient) {
  each_own_column<kOwn>(team, support.atoms, [&](int own, int i) {
    const float z = support.v_min + (float)i * support.spacing();
    gradient[i] = static_cast<Stored>(-share * probabilities[own] * (z - expected));
  });
}

#undef MR_LOG_PROBABILITY_FLOOR
#undef MR_MASS_UNITS

}  // namespace millrace

// One row of a categorical critic's group (program.h, Support), as a team of lanes computes it:
// projection, cross entropy with its gradient, expected value with its gradient. Each lane keeps
// its atoms. Freestanding.
#pragma once

#include "elementary.h"
#include "own_columns_body.h"
#include "support.h"

namespace millrace {

#define MR_LOG_PROBABILITY_FLOOR -30.0f

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
    row.probabilities[own] = mr_exp(row.shifted[own]);
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

// The first atom whose position is `position` or above, `atoms` if there is none. Positions never
// fall from one atom to the next.
MR_FN int first_landing_at(const float* positions, int atoms, float position) {
  int low = 0, high = atoms;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (positions[middle] < position) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Each target atom collects what lands beside it, in the order of the sources: no two lanes write
// to one place. What is not a number reaches atoms 0 and 1, so that the loss shows it. `room` is
// memory that the lanes share, twice `atoms` floats.
template <int kOwn, class Team>
MR_LOOP_FN void project_row(const Team& team, const Support& support,
                            const float (&probabilities)[kOwn], float reward, float discount,
                            float* room, float* target) {
  const int atoms = support.atoms;
  float* const masses = room;
  float* const positions = room + atoms;
  const float moved = reward + discount;
  const bool is_number = moved == moved;
  team.sync();  // the row before has been collected
  each_own_column<kOwn>(team, atoms, [&](int own, int i) {
    masses[i] = probabilities[own];
    positions[i] = landing_position(support, reward, discount, i);
  });
  team.sync();
  each_own_column<kOwn>(team, atoms, [&](int, int j) {
    const float atom = (float)j;
    float mass = is_number || j > 1 ? 0.0f : moved;
    int i = is_number ? first_landing_at(positions, atoms, atom - 1.0f) : atoms;
    for (; i < atoms; ++i) {
      const float position = positions[i];
      if (position >= atom + 1.0f) break;
      const int lower = (int)position;
      const float to_upper = masses[i] * (position - (float)lower);
      if (lower == j) mass += masses[i] - to_upper;
      if (lower + 1 == j) mass += to_upper;
    }
    target[j] = mass;
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
template <int kOwn, class Team>
MR_LOOP_FN float cross_entropy_row(const Team& team, const Softmax<kOwn>& row, const float* target,
                                   float share, float* gradient, int atoms) {
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
    gradient[i] = share * (row.probabilities[own] * weight_sum - weights[own]);
  });
  return team.sum(loss);
}

// gradient = -share * dQ/dlogits.
template <int kOwn, class Team>
MR_LOOP_FN void value_gradient_row(const Team& team, const Support& support,
                                   const float (&probabilities)[kOwn], float expected, float share,
                                   float* gradient) {
  each_own_column<kOwn>(team, support.atoms, [&](int own, int i) {
    const float z = support.v_min + (float)i * support.spacing();
    gradient[i] = -share * probabilities[own] * (z - expected);
  });
}

#undef MR_LOG_PROBABILITY_FLOOR

}  // namespace millrace

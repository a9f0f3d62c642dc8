// One row of a categorical critic's group (program.h, Support), as a team of lanes computes it:
// projection, cross entropy with its gradient, expected value with its gradient. `probabilities` is
// memory that the lanes share, `atoms` floats. Freestanding.
#pragma once

#include "elementary.h"
#include "support.h"
#include "team.h"

namespace millrace {

#define MR_LOG_PROBABILITY_FLOOR -30.0f

struct Softmax {
  float top;      // the largest logit
  float log_sum;  // log of the sum of exp(logit - top)
};

// logits + bias -> probabilities; each lane writes its own atoms.
template <class Team>
MR_FN Softmax softmax_row(const Team& team, const float* logits, const float* bias,
                          float* probabilities, int atoms) {
  float top = -mr_infinity();
  for (int i = team.lane(); i < atoms; i += team.size()) top = mr_max(logits[i] + bias[i], top);
  top = team.maximum(top);
  float sum = 0.0f;
  for (int i = team.lane(); i < atoms; i += team.size()) {
    probabilities[i] = mr_exp(logits[i] + bias[i] - top);
    sum += probabilities[i];
  }
  sum = team.sum(sum);
  const float inverse = 1.0f / sum;
  for (int i = team.lane(); i < atoms; i += team.size()) probabilities[i] *= inverse;
  Softmax softmax;
  softmax.top = top;
  softmax.log_sum = mr_log(sum);
  return softmax;
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

// The first atom that lands at `position` or above, `atoms` if there is none. Positions never fall
// from one atom to the next.
MR_FN int first_landing_at(const Support& support, float reward, float discount, float position) {
  int low = 0, high = support.atoms;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (landing_position(support, reward, discount, middle) < position) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Each target atom collects what lands beside it, in the order of the sources: no two lanes write
// to one place. What is not a number reaches atoms 0 and 1, so that the loss shows it.
template <class Team>
MR_FN void project_row(const Team& team, const Support& support, const float* probabilities,
                       float reward, float discount, float* target) {
  const int last = support.atoms - 1;
  const float moved = reward + discount;
  const bool is_number = moved == moved;
  team.sync();  // probabilities come from all lanes
  for (int j = team.lane(); j <= last; j += team.size()) {
    const float atom = (float)j;
    float mass = is_number || j > 1 ? 0.0f : moved;
    int i = is_number ? first_landing_at(support, reward, discount, atom - 1.0f) : support.atoms;
    for (; i <= last; ++i) {
      const float position = landing_position(support, reward, discount, i);
      if (position >= atom + 1.0f) break;
      const int lower = (int)position;
      const float to_upper = probabilities[i] * (position - (float)lower);
      if (lower == j) mass += probabilities[i] - to_upper;
      if (lower + 1 == j) mass += to_upper;
    }
    target[j] = mass;
  }
  team.sync();  // before the probabilities are overwritten
}

// Sum of p z, to all lanes.
template <class Team>
MR_FN float expected_value_row(const Team& team, const Support& support,
                               const float* probabilities) {
  float value = 0.0f;
  for (int i = team.lane(); i < support.atoms; i += team.size()) {
    value += probabilities[i] * (support.v_min + (float)i * support.spacing());
  }
  return team.sum(value);
}

// Cross entropy of one row, to all lanes; its gradient by the logits, times `share`.
template <class Team>
MR_FN float cross_entropy_row(const Team& team, const float* logits, const float* bias,
                              const float* target, const float* probabilities, Softmax softmax,
                              float share, float* gradient, int atoms) {
  float loss = 0.0f, weight_sum = 0.0f;
  for (int i = team.lane(); i < atoms; i += team.size()) {
    const float log_probability = logits[i] + bias[i] - softmax.top - softmax.log_sum;
    const bool is_clamped = log_probability < MR_LOG_PROBABILITY_FLOOR;
    loss -= target[i] * (is_clamped ? MR_LOG_PROBABILITY_FLOOR : log_probability);
    gradient[i] = is_clamped ? 0.0f : target[i];  // the clamp passes no gradient
    weight_sum += gradient[i];
  }
  weight_sum = team.sum(weight_sum);
  for (int i = team.lane(); i < atoms; i += team.size()) {
    gradient[i] = share * (probabilities[i] * weight_sum - gradient[i]);
  }
  return team.sum(loss);
}

// gradient = -share * dQ/dlogits.
template <class Team>
MR_FN void value_gradient_row(const Team& team, const Support& support, const float* probabilities,
                              float expected, float share, float* gradient) {
  for (int i = team.lane(); i < support.atoms; i += team.size()) {
    const float z = support.v_min + (float)i * support.spacing();
    gradient[i] = -share * probabilities[i] * (z - expected);
  }
}

#undef MR_LOG_PROBABILITY_FLOOR

}  // namespace millrace

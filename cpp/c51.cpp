#include "c51.h"

#include <algorithm>
#include <vector>

#include "elementary.h"
#include "lanes.h"

namespace millrace {
namespace {

constexpr float kLogProbabilityFloor = -30.0f;

// logits + bias -> probabilities. Returns log of the normaliser; `shifted` = logits + bias - max.
MR_CLONES float softmax_row(const float* __restrict logits, const float* __restrict bias,
                            float* __restrict shifted, float* __restrict probabilities, int atoms) {
  for (int i = 0; i < atoms; ++i) shifted[i] = logits[i] + bias[i];
  const float top = lane_max(shifted, atoms);
  for (int i = 0; i < atoms; ++i) {
    shifted[i] -= top;
    probabilities[i] = mr_exp(shifted[i]);
  }
  const float sum = lane_sum(probabilities, atoms);
  const float inverse = 1.0f / sum;
  for (int i = 0; i < atoms; ++i) probabilities[i] *= inverse;
  return mr_log(sum);
}

// Cross entropy of one row and its gradient by the logits, times `share`.
MR_CLONES float cross_entropy_row(const float* __restrict target, const float* __restrict shifted,
                                  const float* __restrict probabilities, float log_sum, float share,
                                  float* __restrict weights, float* __restrict gradient,
                                  int atoms) {
  for (int i = 0; i < atoms; ++i) {
    const float log_probability = shifted[i] - log_sum;
    const bool is_clamped = log_probability < kLogProbabilityFloor;
    gradient[i] = target[i] * (is_clamped ? kLogProbabilityFloor : log_probability);
    weights[i] = is_clamped ? 0.0f : target[i];  // the clamp passes no gradient
  }
  const float loss = -lane_sum(gradient, atoms);
  const float weight_sum = lane_sum(weights, atoms);
  for (int i = 0; i < atoms; ++i) {
    gradient[i] = share * (probabilities[i] * weight_sum - weights[i]);
  }
  return loss;
}

// gradient = -share * dQ/dlogits.
MR_CLONES void value_gradient_row(const float* __restrict probabilities,
                                  const float* __restrict values, float expected, float share,
                                  float* __restrict gradient, int atoms) {
  for (int i = 0; i < atoms; ++i) {
    gradient[i] = -share * probabilities[i] * (values[i] - expected);
  }
}

MR_CLONES float expected_value(const float* probabilities, const float* values, int atoms) {
  return lane_dot(probabilities, values, atoms);
}

std::vector<float> atom_values(const Support& support) {
  std::vector<float> values(support.atoms);
  for (int i = 0; i < support.atoms; ++i) {
    values[i] = support.v_min + static_cast<float>(i) * support.spacing();
  }
  return values;
}

// The group with the smallest expected value, the first of several. probabilities: [group][atom].
int smallest_of(const std::vector<float>& probabilities, const std::vector<float>& values,
                int groups) {
  const int atoms = static_cast<int>(values.size());
  int best = 0;
  float least = expected_value(probabilities.data(), values.data(), atoms);
  for (int g = 1; g < groups; ++g) {
    const float value = expected_value(probabilities.data() + g * atoms, values.data(), atoms);
    if (value < least) {
      least = value;
      best = g;
    }
  }
  return best;
}

}  // namespace

void project_distribution(const Support& support, const float* probabilities, float reward,
                          float discount, float* target) {
  const float spacing = support.spacing();
  const int last = support.atoms - 1;
  std::fill_n(target, support.atoms, 0.0f);
  for (int i = 0; i < support.atoms; ++i) {
    const float z = support.v_min + static_cast<float>(i) * spacing;
    float position = (reward + discount * z - support.v_min) / spacing;
    // Clamped before it is split, so that both neighbours exist; NaN stays NaN.
    position = position < 0.0f ? 0.0f : position;
    position = position > static_cast<float>(last) ? static_cast<float>(last) : position;
    const int lower = position >= 0.0f ? static_cast<int>(position) : 0;
    const int upper = std::min(lower + 1, last);
    const float to_upper = probabilities[i] * (position - static_cast<float>(lower));
    target[lower] += probabilities[i] - to_upper;
    target[upper] += to_upper;
  }
}

void execute(const ProjectTargetOp& op, const CpuFrame& frame) {
  const Arguments& arguments = frame.arguments;
  const int atoms = op.support.atoms;
  const float alpha = mr_exp(frame.scalar(op.log_alpha));
  const std::vector<float> values = atom_values(op.support);
  std::vector<float> shifted(atoms);
  std::vector<float> probabilities(static_cast<size_t>(op.groups) * atoms);  // [group][atom]
  for (int r = 0; r < op.rows; ++r) {
    const float* row = arguments.rows + (r % op.source_rows) * arguments.row_stride;
    const float reward = row[op.reward_column] * arguments.reward_scale;
    const float bootstrap =
        std::clamp(1.0f - row[op.done_column] + row[op.truncated_column], 0.0f, 1.0f);
    const float discount = op.gamma * bootstrap;
    // reward - reward is NaN for an infinite reward, which the clamp to the support would hide.
    const float moved =
        reward - discount * alpha * frame.floats(op.log_probability)[r] + (reward - reward);
    const size_t first = static_cast<size_t>(r) * op.groups * op.value_stride;
    for (int g = 0; g < op.groups; ++g) {
      softmax_row(frame.floats(op.logits) + first + g * op.value_stride,
                  frame.floats(op.bias) + g * op.value_stride, shifted.data(),
                  probabilities.data() + g * atoms, atoms);
    }
    float* target = frame.floats(op.target) + first;
    if (op.takes_smallest) {
      const int smallest = smallest_of(probabilities, values, op.groups);
      project_distribution(op.support, probabilities.data() + smallest * atoms, moved, discount,
                           target);
      for (int g = 1; g < op.groups; ++g) std::copy_n(target, atoms, target + g * op.value_stride);
      continue;
    }
    for (int g = 0; g < op.groups; ++g) {
      project_distribution(op.support, probabilities.data() + g * atoms, moved, discount,
                           target + g * op.value_stride);
    }
  }
}

void execute(const CriticLossOp& op, const CpuFrame& frame) {
  const int atoms = op.support.atoms;
  const float share = 1.0f / static_cast<float>(op.rows);
  const float loss_share = op.is_mean_over_groups ? share / static_cast<float>(op.groups) : share;
  const std::vector<float> values = atom_values(op.support);
  std::vector<float> shifted(atoms), probabilities(atoms), weights(atoms);
  float loss = 0.0f, value_sum = 0.0f;
  float value_max = op.support.v_min, value_min = op.support.v_max;
  for (int r = 0; r < op.rows; ++r) {
    for (int g = 0; g < op.groups; ++g) {
      const size_t at = (static_cast<size_t>(r) * op.groups + g) * op.value_stride;
      const float log_sum =
          softmax_row(frame.floats(op.logits) + at, frame.floats(op.bias) + g * op.value_stride,
                      shifted.data(), probabilities.data(), atoms);
      loss += cross_entropy_row(frame.floats(op.target) + at, shifted.data(), probabilities.data(),
                                log_sum, loss_share, weights.data(),
                                frame.floats(op.logits_gradient) + at, atoms);
      const float value = expected_value(probabilities.data(), values.data(), atoms);
      value_sum += value;
      value_max = std::max(value_max, value);
      value_min = std::min(value_min, value);
    }
  }
  frame.scalar(op.loss) = loss * loss_share;
  frame.scalar(op.value_mean) = value_sum * share / static_cast<float>(op.groups);
  frame.scalar(op.value_max) = value_max;
  frame.scalar(op.value_min) = value_min;
}

void execute(const ActorLossOp& op, const CpuFrame& frame) {
  const int atoms = op.support.atoms;
  const float share = 1.0f / static_cast<float>(op.rows);
  const float value_share = op.takes_smallest ? share : share / static_cast<float>(op.groups);
  const float alpha = mr_exp(frame.scalar(op.log_alpha));
  const std::vector<float> values = atom_values(op.support);
  std::vector<float> shifted(atoms);
  std::vector<float> probabilities(static_cast<size_t>(op.groups) * atoms);  // [group][atom]
  float value_sum = 0.0f, log_probability_sum = 0.0f;
  for (int r = 0; r < op.rows; ++r) {
    log_probability_sum += frame.floats(op.log_probability)[r];
    const size_t first = static_cast<size_t>(r) * op.groups * op.value_stride;
    for (int g = 0; g < op.groups; ++g) {
      softmax_row(frame.floats(op.logits) + first + g * op.value_stride,
                  frame.floats(op.bias) + g * op.value_stride, shifted.data(),
                  probabilities.data() + g * atoms, atoms);
    }
    const int smallest = op.takes_smallest ? smallest_of(probabilities, values, op.groups) : -1;
    for (int g = 0; g < op.groups; ++g) {
      float* gradient = frame.floats(op.logits_gradient) + first + g * op.value_stride;
      if (smallest >= 0 && g != smallest) {
        std::fill_n(gradient, atoms, 0.0f);
        continue;
      }
      const float* own = probabilities.data() + g * atoms;
      const float value = expected_value(own, values.data(), atoms);
      value_sum += value;
      value_gradient_row(own, values.data(), value, value_share, gradient, atoms);
    }
  }
  frame.scalar(op.loss) = alpha * log_probability_sum * share - value_sum * value_share;
  frame.scalar(op.entropy) = -log_probability_sum * share;
}

}  // namespace millrace

#include "scalar_critic.h"

#include <algorithm>

#include "elementary.h"
#include "lanes.h"
#include "scalar_critic_body.h"

namespace millrace {
namespace {

MR_CLONES float dot(const float* x, const float* y, int count) { return lane_dot(x, y, count); }

MR_CLONES void scale_weight(const float* __restrict weight, float factor,
                            const float* __restrict hidden, bool is_relu,
                            float* __restrict gradient, int count) {
  for (int i = 0; i < count; ++i) {
    gradient[i] = is_relu && !(hidden[i] > 0.0f) ? 0.0f : factor * weight[i];
  }
}

// Of one row and group.
struct Head {
  const ScalarHead& op;
  const CpuFrame& frame;

  size_t line(int r, int g) const { return static_cast<size_t>(r) * op.groups + g; }
  const float* hidden(int r, int g) const {
    return frame.floats(op.hidden) + line(r, g) * op.width;
  }
  const float* weight(int g) const { return frame.floats(op.weight + g * op.weight_distance); }
  float value(int r, int g) const {
    return dot(hidden(r, g), weight(g), op.width) + frame.scalar(op.bias + g * op.bias_distance);
  }
  LeastValue least(int r) const {
    LeastValue least{};
    for (int g = 0; g < op.groups; ++g) least.see(value(r, g), g);
    return least;
  }
  void pass_back(const ScalarHeadGradient& gradient, int r, int g, float value_gradient) const {
    scale_weight(weight(g), value_gradient, hidden(r, g), gradient.is_relu,
                 frame.floats(gradient.hidden) + line(r, g) * op.width, op.width);
  }
};

}  // namespace

void execute(const ScalarTargetOp& op, const CpuFrame& frame) {
  const Head head = {op.head, frame};
  const Arguments& arguments = frame.arguments;
  const float alpha = mr_exp(frame.scalar(op.log_alpha));
  for (int r = 0; r < op.head.rows; ++r) {
    const float* row = arguments.rows + (r % op.source_rows) * arguments.row_stride;
    const float soft_value = head.least(r).value - alpha * frame.floats(op.log_probability)[r];
    const float reward = row[op.reward_column] * arguments.reward_scale;
    frame.floats(op.target)[r] =
        soft_target(reward, row[op.done_column], row[op.truncated_column], op.gamma, soft_value);
  }
}

void execute(const ScalarCriticGradientOp& op, const CpuFrame& frame) {
  const Head head = {op.head, frame};
  const float share = 2.0f / static_cast<float>(op.head.rows);
  for (int r = 0; r < op.head.rows; ++r) {
    for (int g = 0; g < op.head.groups; ++g) {
      const float value = head.value(r, g);
      const float gradient = share * (value - frame.floats(op.target)[r]);
      frame.floats(op.values)[head.line(r, g)] = value;
      frame.floats(op.values_gradient)[head.line(r, g) * op.head.bias_distance] = gradient;
      head.pass_back(op.gradient, r, g, gradient);
    }
  }
}

void execute(const ScalarCriticLossOp& op, const CpuFrame& frame) {
  const float share = 1.0f / static_cast<float>(op.rows);
  float loss = 0.0f, value_sum = 0.0f;
  float value_max = -mr_infinity(), value_min = mr_infinity();
  for (int r = 0; r < op.rows; ++r) {
    const float* values = frame.floats(op.values) + static_cast<size_t>(r) * op.groups;
    for (int g = 0; g < op.groups; ++g) {
      const float error = values[g] - frame.floats(op.target)[r];
      loss += error * error;
      value_sum += values[g];
      value_max = std::max(value_max, values[g]);
      value_min = std::min(value_min, values[g]);
    }
  }
  frame.scalar(op.loss) = loss * share;
  frame.scalar(op.value_mean) = value_sum * share / static_cast<float>(op.groups);
  frame.scalar(op.value_max) = value_max;
  frame.scalar(op.value_min) = value_min;
}

void execute(const ScalarActorGradientOp& op, const CpuFrame& frame) {
  const Head head = {op.head, frame};
  const float share = 1.0f / static_cast<float>(op.head.rows);
  for (int r = 0; r < op.head.rows; ++r) {
    const LeastValue least = head.least(r);
    frame.floats(op.least_values)[r] = least.value;
    for (int g = 0; g < op.head.groups; ++g) {
      head.pass_back(op.gradient, r, g, g == least.group ? -share : 0.0f);
    }
  }
}

void execute(const ScalarActorLossOp& op, const CpuFrame& frame) {
  const float share = 1.0f / static_cast<float>(op.rows);
  const float alpha = mr_exp(frame.scalar(op.log_alpha));
  float value_sum = 0.0f, log_probability_sum = 0.0f;
  for (int r = 0; r < op.rows; ++r) {
    value_sum += frame.floats(op.least_values)[r];
    log_probability_sum += frame.floats(op.log_probability)[r];
  }
  frame.scalar(op.loss) = (alpha * log_probability_sum - value_sum) * share;
  frame.scalar(op.entropy) = -log_probability_sum * share;
}

}  // namespace millrace

#include "scalar_critic.h"

#include <algorithm>

#include "elementary.h"
#include "scalar_critic_body.h"

namespace millrace {

void execute(const ScalarTargetOp& op, const CpuFrame& frame) {
  const Arguments& arguments = frame.arguments;
  const float alpha = mr_exp(frame.scalar(op.log_alpha));
  const float* bias = frame.floats(op.bias);
  for (int r = 0; r < op.rows; ++r) {
    const float* row = arguments.rows + (r % op.source_rows) * arguments.row_stride;
    const float* values =
        frame.floats(op.values) + static_cast<size_t>(r) * op.groups * op.value_stride;
    const int least = least_group(values, bias, op.groups, op.value_stride);
    const float soft_value = values[least * op.value_stride] + bias[least * op.value_stride] -
                             alpha * frame.floats(op.log_probability)[r];
    const float reward = row[op.reward_column] * arguments.reward_scale;
    frame.floats(op.target)[r] =
        soft_target(reward, row[op.done_column], row[op.truncated_column], op.gamma, soft_value);
  }
}

void execute(const ScalarCriticLossOp& op, const CpuFrame& frame) {
  const float share = 1.0f / static_cast<float>(op.rows);
  const float* bias = frame.floats(op.bias);
  float loss = 0.0f, value_sum = 0.0f;
  float value_max = -mr_infinity(), value_min = mr_infinity();
  for (int r = 0; r < op.rows; ++r) {
    const float target = frame.floats(op.target)[r];
    for (int g = 0; g < op.groups; ++g) {
      const size_t at = (static_cast<size_t>(r) * op.groups + g) * op.value_stride;
      const float value = frame.floats(op.values)[at] + bias[g * op.value_stride];
      const float error = value - target;
      loss += error * error;
      frame.floats(op.values_gradient)[at] = 2.0f * share * error;
      value_sum += value;
      value_max = std::max(value_max, value);
      value_min = std::min(value_min, value);
    }
  }
  frame.scalar(op.loss) = loss * share;
  frame.scalar(op.value_mean) = value_sum * share / static_cast<float>(op.groups);
  frame.scalar(op.value_max) = value_max;
  frame.scalar(op.value_min) = value_min;
}

void execute(const ScalarActorLossOp& op, const CpuFrame& frame) {
  const float share = 1.0f / static_cast<float>(op.rows);
  const float alpha = mr_exp(frame.scalar(op.log_alpha));
  const float* bias = frame.floats(op.bias);
  float value_sum = 0.0f, log_probability_sum = 0.0f;
  for (int r = 0; r < op.rows; ++r) {
    const float* values =
        frame.floats(op.values) + static_cast<size_t>(r) * op.groups * op.value_stride;
    float* gradient =
        frame.floats(op.values_gradient) + static_cast<size_t>(r) * op.groups * op.value_stride;
    const int least = least_group(values, bias, op.groups, op.value_stride);
    value_sum += values[least * op.value_stride] + bias[least * op.value_stride];
    log_probability_sum += frame.floats(op.log_probability)[r];
    for (int g = 0; g < op.groups; ++g) {
      gradient[g * op.value_stride] = g == least ? -share : 0.0f;
    }
  }
  frame.scalar(op.loss) = (alpha * log_probability_sum - value_sum) * share;
  frame.scalar(op.entropy) = -log_probability_sum * share;
}

}  // namespace millrace

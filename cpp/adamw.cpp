#include "adamw.h"

#include <algorithm>
#include <cmath>

#include "adamw_body.h"
#include "elementary.h"
#include "lanes.h"
#include "row_norm.h"

namespace millrace {
namespace {

constexpr uint64_t kNormBlock = 4096;  // floats summed in single precision at a time

MR_CLONES float squares(const float* values, int count) { return lane_dot(values, values, count); }

MR_CLONES void adamw(const AdamWStep& step, const float* __restrict gradient,
                     float* __restrict parameters, float* __restrict first,
                     float* __restrict second, uint64_t count) {
  const AdamWStep s = step;
  for (uint64_t i = 0; i < count; ++i) {
    parameters[i] = adamw_element(s, gradient[i], parameters[i], first + i, second + i);
  }
}

MR_CLONES void adamw_with_target(const AdamWStep& step, const float* __restrict gradient,
                                 float* __restrict parameters, float* __restrict first,
                                 float* __restrict second, float* __restrict target,
                                 uint64_t count) {
  const AdamWStep s = step;
  for (uint64_t i = 0; i < count; ++i) {
    parameters[i] = adamw_element(s, gradient[i], parameters[i], first + i, second + i);
    target[i] += s.target_rate * (parameters[i] - target[i]);
  }
}

MR_CLONES void move_target(const float* __restrict parameters, float* __restrict target, float rate,
                           uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) target[i] += rate * (parameters[i] - target[i]);
}

// Whether the step may be taken.
bool measure_gradient(const AdamWOp& op, const CpuFrame& frame) {
  const float* gradient = frame.floats(op.gradient);
  double sum = 0;
  for (uint64_t i = 0; i < op.count; i += kNormBlock) {
    sum += squares(gradient + i, static_cast<int>(std::min(kNormBlock, op.count - i)));
  }
  const float norm = static_cast<float>(std::sqrt(sum));
  float& finite = frame.scalar(op.finite);
  if (op.opens) finite = 1.0f;
  if (!mr_isfinite(norm) || !mr_isfinite(frame.scalar(op.loss))) finite = 0.0f;
  frame.scalar(op.norm) = norm;
  frame.scalar(op.clip) = gradient_clip(op.max_norm, norm);
  return finite == 1.0f;
}

}  // namespace

void execute(const AdamWOp& op, const CpuFrame& frame) {
  if (!measure_gradient(op, frame)) return;
  uint64_t& count = *frame.counters(op.step);
  AdamWStep step = adamw_step(op.constants, frame.arguments.learning_rate(op.rate), ++count);
  step.gradient_scale = frame.scalar(op.clip);
  step.target_rate = frame.arguments.target_rate;
  const float* gradient = frame.floats(op.gradient);
  float* parameters = frame.floats(op.parameters);
  float* first = frame.floats(op.first_moment);
  float* second = frame.floats(op.second_moment);
  if (op.target.used() && op.rows.empty()) {
    adamw_with_target(step, gradient, parameters, first, second, frame.floats(op.target), op.count);
    return;
  }
  adamw(step, gradient, parameters, first, second, op.count);
  scale_rows(op.rows, parameters);
  if (!op.target.used()) return;
  move_target(parameters, frame.floats(op.target), step.target_rate, op.count);
}

void execute(const TemperatureOp& op, const CpuFrame& frame) {
  const float* log_probability = frame.floats(op.log_probability);
  double sum = 0;
  for (int r = 0; r < op.rows; ++r) sum += log_probability[r];
  const float alpha = mr_exp(frame.scalar(op.log_alpha));
  const float loss = -alpha * (static_cast<float>(sum / op.rows) + op.target_entropy);
  frame.scalar(op.alpha) = alpha;
  frame.scalar(op.loss) = loss;
  frame.scalar(op.gradient) = loss;  // d(-alpha x)/d(log alpha) = -alpha x
  float& finite = frame.scalar(op.finite);
  if (!mr_isfinite(loss)) finite = 0.0f;
  if (finite != 1.0f) return;
  uint64_t& count = *frame.counters(op.step);
  const AdamWStep step = adamw_step(op.constants, frame.arguments.alpha_learning_rate, ++count);
  adamw(step, &frame.scalar(op.gradient), frame.floats(op.log_alpha), frame.floats(op.first_moment),
        frame.floats(op.second_moment), 1);
}

}  // namespace millrace

#include "adamw.h"

#include <algorithm>
#include <cmath>

#include "elementary.h"
#include "lanes.h"

namespace millrace {
namespace {

constexpr float kEpsilon = 1e-8f;
constexpr uint64_t kNormBlock = 4096;  // floats summed in single precision at a time

// Everything of one step that is the same for all parameters.
struct Step {
  float gradient_scale;  // the clip
  float decay;           // 1 - rate * weight decay
  float rate;            // rate / (1 - beta1^t)
  float inverse_root;    // 1 / sqrt(1 - beta2^t)
  float beta1, beta2;
  float target_rate;
};

MR_CLONES float squares(const float* values, int count) { return lane_dot(values, values, count); }

MR_CLONES void adamw(const Step& step, const float* __restrict gradient,
                     float* __restrict parameters, float* __restrict first,
                     float* __restrict second, uint64_t count) {
  const Step s = step;
  for (uint64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * s.gradient_scale;
    first[i] = s.beta1 * first[i] + (1.0f - s.beta1) * g;
    second[i] = s.beta2 * second[i] + (1.0f - s.beta2) * g * g;
    const float deviation = mr_sqrt(second[i]) * s.inverse_root + kEpsilon;
    parameters[i] = parameters[i] * s.decay - s.rate * first[i] / deviation;
  }
}

MR_CLONES void adamw_with_target(const Step& step, const float* __restrict gradient,
                                 float* __restrict parameters, float* __restrict first,
                                 float* __restrict second, float* __restrict target,
                                 uint64_t count) {
  const Step s = step;
  for (uint64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * s.gradient_scale;
    first[i] = s.beta1 * first[i] + (1.0f - s.beta1) * g;
    second[i] = s.beta2 * second[i] + (1.0f - s.beta2) * g * g;
    const float deviation = mr_sqrt(second[i]) * s.inverse_root + kEpsilon;
    parameters[i] = parameters[i] * s.decay - s.rate * first[i] / deviation;
    target[i] += s.target_rate * (parameters[i] - target[i]);
  }
}

Step step_of(const AdamWConstants& constants, float learning_rate, uint64_t step_count) {
  const double t = static_cast<double>(step_count);
  Step step;
  step.gradient_scale = 1.0f;
  step.decay = 1.0f - learning_rate * constants.weight_decay;
  step.rate = static_cast<float>(learning_rate / (1.0 - std::pow(double{constants.beta1}, t)));
  step.inverse_root =
      static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(double{constants.beta2}, t)));
  step.beta1 = constants.beta1;
  step.beta2 = constants.beta2;
  step.target_rate = 0.0f;
  return step;
}

float learning_rate_of(const Arguments& arguments, LearningRate rate) {
  return rate == LearningRate::kActor    ? arguments.actor_learning_rate
         : rate == LearningRate::kCritic ? arguments.critic_learning_rate
                                         : arguments.alpha_learning_rate;
}

}  // namespace

void execute(const GradientNormOp& op, const CpuFrame& frame) {
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
  frame.scalar(op.clip) = op.max_norm > 0.0f ? std::min(1.0f, op.max_norm / (norm + 1e-6f)) : 1.0f;
}

void execute(const AdamWOp& op, const CpuFrame& frame) {
  if (frame.scalar(op.finite) != 1.0f) return;
  uint64_t& count = *frame.workspace.counters(op.step);
  Step step = step_of(op.constants, learning_rate_of(frame.arguments, op.rate), ++count);
  step.gradient_scale = frame.scalar(op.clip);
  step.target_rate = frame.arguments.target_rate;
  const float* gradient = frame.floats(op.gradient);
  float* parameters = frame.floats(op.parameters);
  float* first = frame.floats(op.first_moment);
  float* second = frame.floats(op.second_moment);
  if (op.target.used()) {
    adamw_with_target(step, gradient, parameters, first, second, frame.floats(op.target), op.count);
  } else {
    adamw(step, gradient, parameters, first, second, op.count);
  }
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
  uint64_t& count = *frame.workspace.counters(op.step);
  const Step step = step_of(op.constants, frame.arguments.alpha_learning_rate, ++count);
  adamw(step, &frame.scalar(op.gradient), frame.floats(op.log_alpha), frame.floats(op.first_moment),
        frame.floats(op.second_moment), 1);
}

}  // namespace millrace

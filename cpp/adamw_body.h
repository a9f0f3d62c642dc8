// One AdamW step of one parameter. Every backend takes the same steps: what all parameters share is
// computed once, in double precision. Loops over adamw_element vectorise.
#pragma once

#include "elementary.h"

#if !defined(__CUDACC__) && !defined(__METAL_VERSION__)
#include <cmath>
#endif

namespace millrace {

struct AdamWConstants {
  float beta1, beta2, weight_decay;
};

// Everything of one step that is the same for all parameters.
struct AdamWStep {
  float gradient_scale;  // the clip
  float decay;           // 1 - rate * weight decay
  float rate;            // rate / (1 - beta1^t)
  float inverse_root;    // 1 / sqrt(1 - beta2^t)
  float beta1, beta2;
  float target_rate;
};

#if !defined(__METAL_VERSION__)  // has no double: optimizer.metal
MR_FN float adamw_decay(const AdamWConstants& constants, float learning_rate) {
  return 1.0f - learning_rate * constants.weight_decay;
}

// `count` steps with this one; here and below.
MR_FN float adamw_rate(const AdamWConstants& constants, float learning_rate, u64 count) {
  return (float)((double)learning_rate / (1.0 - pow((double)constants.beta1, (double)count)));
}

MR_FN float adamw_inverse_root(const AdamWConstants& constants, u64 count) {
  return (float)(1.0 / sqrt(1.0 - pow((double)constants.beta2, (double)count)));
}

MR_FN AdamWStep adamw_step(const AdamWConstants& constants, float learning_rate, u64 count) {
  AdamWStep step;
  step.gradient_scale = 1.0f;
  step.decay = adamw_decay(constants, learning_rate);
  step.rate = adamw_rate(constants, learning_rate, count);
  step.inverse_root = adamw_inverse_root(constants, count);
  step.beta1 = constants.beta1;
  step.beta2 = constants.beta2;
  step.target_rate = 0.0f;
  return step;
}
#endif

// What the gradient is multiplied by; max_norm 0 means no clipping.
MR_FN float gradient_clip(float max_norm, float norm) {
  return max_norm > 0.0f ? mr_min(max_norm / (norm + 1e-6f), 1.0f) : 1.0f;
}

// Returns the new parameter.
MR_LOOP_FN float adamw_element(MR_THREAD const AdamWStep& step, float gradient, float parameter,
                               MR_THREAD float* first, MR_THREAD float* second) {
  const float g = gradient * step.gradient_scale;
  *first = step.beta1 * *first + (1.0f - step.beta1) * g;
  *second = step.beta2 * *second + (1.0f - step.beta2) * g * g;
  const float deviation = mr_sqrt(*second) * step.inverse_root + 1e-8f;
  return parameter * step.decay - step.rate * *first / deviation;
}

}  // namespace millrace

// One row of scalar twin critics, as every backend computes it. Values reach it without their bias;
// both lie `stride` from group to group. Freestanding.
#pragma once

#include "portable.h"

namespace millrace {

// The group whose value is least; the first of equal ones. What is not a number is least.
MR_FN int least_group(MR_DEVICE const float* values, MR_DEVICE const float* bias, int groups,
                      int stride) {
  int least = 0;
  float smallest = values[0] + bias[0];
  for (int g = 1; g < groups; ++g) {
    const float value = values[g * stride] + bias[g * stride];
    if (value < smallest || value != value) {
      smallest = value;
      least = g;
    }
  }
  return least;
}

// r + gamma b (Q' - alpha log pi'), b = clamp(1 - done + truncated, 0, 1).
MR_FN float soft_target(float reward, float done, float truncated, float gamma, float soft_value) {
  float bootstrap = 1.0f - done + truncated;
  bootstrap = bootstrap < 0.0f ? 0.0f : bootstrap;
  bootstrap = bootstrap > 1.0f ? 1.0f : bootstrap;
  return reward + gamma * bootstrap * soft_value;
}

}  // namespace millrace

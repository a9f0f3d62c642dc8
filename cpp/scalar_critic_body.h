// One row of scalar twin critics, as every backend computes it. Freestanding.
#pragma once

#include "portable.h"

namespace millrace {

// Of a row's groups the one whose value is least so far; the first of equal ones. What is not a
// number is least.
struct LeastValue {
  float value;
  int group;

  MR_FN void see(float next, int next_group) {
    if (next_group > 0 && !(next < value) && next == next) return;
    if (next_group > 0 && value != value) return;
    value = next;
    group = next_group;
  }
};

// r + gamma b (Q' - alpha log pi'), b = clamp(1 - done + truncated, 0, 1).
MR_FN float soft_target(float reward, float done, float truncated, float gamma, float soft_value) {
  float bootstrap = 1.0f - done + truncated;
  bootstrap = bootstrap < 0.0f ? 0.0f : bootstrap;
  bootstrap = bootstrap > 1.0f ? 1.0f : bootstrap;
  return reward + gamma * bootstrap * soft_value;
}

}  // namespace millrace

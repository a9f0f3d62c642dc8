// The argument block of programs: what varies between two runs of one. Freestanding, since kernels
// read it in the memory of their device.
#pragma once

#include "portable.h"

namespace millrace {

enum class LearningRate { kActor, kCritic, kAlpha };

// Plain data: a device gets a copy per launch.
struct Arguments {
  MR_DEVICE const float* rows;  // the gathered batch, or the observations to act on
  u64 row_stride;               // floats
  u64 seed;
  u64 tick;  // random counter: the update index of a learner, the tick of a policy
  float actor_learning_rate;
  float critic_learning_rate;
  float alpha_learning_rate;
  float target_rate;          // tau
  float reward_scale = 1.0f;  // rewards of the batch are multiplied by it

  MR_FN float learning_rate(LearningRate rate) const {
    return rate == LearningRate::kActor    ? actor_learning_rate
           : rate == LearningRate::kCritic ? critic_learning_rate
                                           : alpha_learning_rate;
  }
};

}  // namespace millrace

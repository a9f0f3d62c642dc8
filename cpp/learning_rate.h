// The learning rate of one optimizer: from `start` along half a cosine to final_share of it, over
// decay_steps steps of that optimizer; then it stays. 0 steps: it never moves.
#pragma once

#include <cstdint>

namespace millrace {

struct LearningRateSchedule {
  float start;
  int decay_steps;
  float final_share;

  // Of the step with so many before it.
  float at(uint64_t step) const;
};

}  // namespace millrace

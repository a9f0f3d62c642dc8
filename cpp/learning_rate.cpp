#include "learning_rate.h"

#include <cmath>

namespace millrace {

float LearningRateSchedule::at(uint64_t step) const {
  if (decay_steps == 0) return start;
  const double last = start * double{final_share};
  if (step >= static_cast<uint64_t>(decay_steps)) return static_cast<float>(last);
  const double half_turn = M_PI * static_cast<double>(step) / decay_steps;
  return static_cast<float>(last + 0.5 * (start - last) * (1.0 + std::cos(half_turn)));
}

}  // namespace millrace

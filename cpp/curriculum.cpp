#include "curriculum.h"

#include <algorithm>
#include <cmath>

namespace millrace {

PenaltyCurriculum::PenaltyCurriculum(const PenaltyCurriculumSpec& spec, int num_envs)
    : spec_(spec),
      window_(std::max(1.0, std::floor(spec.window * num_envs / 4096.0))),
      scale_(std::clamp(spec.start, spec.min, spec.max)) {}

void PenaltyCurriculum::episodes_ended(int count, double mean_length) {
  if (count == 0) return;
  const double share = std::min(count / window_, 1.0);
  average_length_ = average_length_ * (1 - share) + mean_length * share;
  if (average_length_ < spec_.lower_length) scale_ *= 1 - spec_.rate;
  if (average_length_ > spec_.upper_length) scale_ *= 1 + spec_.rate;
  scale_ = std::clamp(scale_, spec_.min, spec_.max);
}

void PenaltyCurriculum::register_state(StateRegistry& registry) {
  registry.add("curriculum/penalty_scale", DType::kF64, {1}, &scale_);
  registry.add("curriculum/average_length", DType::kF64, {1}, &average_length_);
}

}  // namespace millrace

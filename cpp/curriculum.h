// The penalty curriculum: one scale for all negative rewards that follows the average length of
// ended episodes. Reset-owned: changed by the reset of a tick, read by the update of the next, on
// the collector's thread. It is part of the checkpoint.
#pragma once

#include "state_registry.h"

namespace millrace {

struct PenaltyCurriculumSpec {
  bool enabled = false;
  double start = 1, min = 1, max = 1;
  double lower_length = 0, upper_length = 0;  // ticks
  double rate = 0;                            // relative change per tick with ended episodes
  double window = 1;                          // episodes, at 4,096 environments
};

class PenaltyCurriculum {
 public:
  PenaltyCurriculum(const PenaltyCurriculumSpec& spec, int num_envs);

  // Once per tick in which episodes ended; `mean_length` in ticks lived.
  void episodes_ended(int count, double mean_length);
  float scale() const { return spec_.enabled ? static_cast<float>(scale_) : 1.0f; }
  double average_length() const { return average_length_; }
  void register_state(StateRegistry& registry);

 private:
  PenaltyCurriculumSpec spec_;
  double window_;
  double scale_;
  double average_length_ = 0;
};

}  // namespace millrace

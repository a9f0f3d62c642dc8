// Left-right mirror maps of a task's vectors, built from names: joints swap by their left_/right_
// prefix and change sign when their name says roll or yaw; every observation term knows its own
// rule. A map is an involution: applying it twice gives back every bit. Immutable; any thread.
#pragma once

#include <string>
#include <vector>

#include "update_body.h"

namespace millrace {

// out[i] = sign[i] * in[source[i]]
struct MirrorMap {
  std::vector<int> source;
  std::vector<float> sign;

  void apply(const float* in, float* out) const;
};

struct Symmetry {
  bool available = false;
  MirrorMap observation, critic, action;
};

// Throws Failure(kInvalid) naming a left_ or right_ joint without its partner.
MirrorMap mirror_joints(const std::vector<std::string>& joint_names);
MirrorMap mirror_observation(const ObservationLayout& layout, const MirrorMap& joints,
                             const MirrorMap& actions);

}  // namespace millrace

// One tensor of one group of a network, as a checkpoint names it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "state_registry.h"

namespace millrace {

struct NetworkTensor {
  enum Kind { kWeight, kBias, kGain, kShift, kMean, kVariance };

  std::string name;  // "l0/weight"
  std::vector<int64_t> shape;
  uint64_t offset;      // of group 0, from the start of the network's span
  uint64_t row_stride;  // of a matrix, whose rows may be filled up; else of no meaning
  uint64_t distance;    // to the next group
  int fan_in;
  Kind kind;
  bool is_head;

  uint64_t count() const;
  // Running statistics are moved, not trained.
  bool is_trained() const { return kind != kMean && kind != kVariance; }
};

// Registers tensors as "{name}/l0/weight" (one group) or "{name}/0/l0/weight", …; `suffix` is
// appended ("/m"). Of what an optimizer keeps, `only_trained` ones exist.
void register_tensors(StateRegistry& registry, const std::vector<NetworkTensor>& tensors,
                      int groups, const std::string& name, const std::string& suffix,
                      float* parameters, bool only_trained = false);

}  // namespace millrace

// FastSAC: SAC with two categorical critics, each bootstrapped from its own target network, and
// mirrored copies of the batch.
#pragma once

#include "fastsac_programs.h"
#include "learner_sac.h"

namespace millrace {

class LearnerFastSac : public LearnerSac {
 public:
  template <class... Place>
  LearnerFastSac(const LearnerSpec& spec, const RowLayout& layout, const RowMirror& mirror,
                 uint64_t seed, Place&&... place)
      : LearnerSac(std::make_unique<FastSacPrograms>(spec, layout), mirror, seed,
                   std::forward<Place>(place)...) {}

  const FastSacPrograms& programs() const {
    return static_cast<const FastSacPrograms&>(LearnerSac::programs());
  }
};

}  // namespace millrace

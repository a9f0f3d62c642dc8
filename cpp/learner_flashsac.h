// FlashSAC: SAC with batch-normalised residual networks of unit-norm weights, two categorical
// critics that both learn from the smaller one's distribution.
#pragma once

#include "flashsac_programs.h"
#include "learner_sac.h"

namespace millrace {

class LearnerFlashSac : public LearnerSac {
 public:
  template <class... Place>
  LearnerFlashSac(const LearnerSpec& spec, const RowLayout& layout, const RowMirror& mirror,
                  uint64_t seed, Place&&... place)
      : LearnerSac(std::make_unique<FlashSacPrograms>(spec, layout), mirror, seed,
                   std::forward<Place>(place)...) {}

  const FlashSacPrograms& programs() const {
    return static_cast<const FlashSacPrograms&>(LearnerSac::programs());
  }
};

}  // namespace millrace

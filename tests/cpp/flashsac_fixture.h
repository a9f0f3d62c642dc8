// The small learner problem of fastsac_fixture.h with FlashSAC's settings.
#pragma once

#include "fastsac_fixture.h"
#include "learner_flashsac.h"

namespace millrace {

inline LearnerSpec small_flash_spec() {
  LearnerSpec spec = small_spec();
  spec.algorithm = Algorithm::kFlashSac;
  spec.actor_hidden = 4;
  spec.critic_hidden = 8;
  spec.v_min = -5;
  spec.v_max = 5;
  spec.weight_decay = 0.0f;
  spec.beta2 = 0.999f;
  spec.target_entropy_ratio = 0.478f;
  return spec;
}

}  // namespace millrace

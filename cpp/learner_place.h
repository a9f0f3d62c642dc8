// LearnerPlace: where the learner's programs run, in what precision, and where the policy acts that
// follows it. Resolved once, the same way
// by preflight and by the run.
#pragma once

#include <string>

#include "program_launch.h"
#include "run_plan.h"

namespace millrace {

struct LearnerPlace {
  bool is_on_device;
  Precision precision;
  std::string obstacle;  // why what was requested cannot be had; empty: nothing
  std::string subject;   // the configuration key of the obstacle
  // With the learner's programs, unless only the learner thread may submit them.
  bool is_policy_on_device;
};

// `api`: of the device that holds the replay.
LearnerPlace choose_learner_place(const RunPlan& plan, const BackendApi& api);

}  // namespace millrace

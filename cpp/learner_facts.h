// What preflight knows of the learner's programs: the same on every device, without allocating.
#pragma once

#include <string>
#include <vector>

#include "layout.h"
#include "learner.h"
#include "program_facts.h"

namespace millrace {

struct LearnerProgramFacts {
  std::string graph;  // that holds it: "learner_critic", "learner_critic_and_actor"
  ProgramFacts program;
};

// The critic's and the actor's program, as they would run on that device. The graph of the second
// holds the first, too.
std::vector<LearnerProgramFacts> learner_facts(const LearnerSpec& spec, const RowLayout& layout,
                                               const std::string& device);

}  // namespace millrace

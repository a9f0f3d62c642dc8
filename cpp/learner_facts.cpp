#include "learner_facts.h"

#include "op_facts.h"
#include "sac_programs.h"

namespace millrace {

std::vector<LearnerProgramFacts> learner_facts(const LearnerSpec& spec, const RowLayout& layout,
                                               const std::string& device) {
  const std::unique_ptr<SacPrograms> programs = SacPrograms::make(spec, layout);
  const auto facts = [&](const Program& program) {
    return facts_of(program, device, InputUse::kCopied);
  };
  return {{"learner_critic", facts(*programs->critic_program)},
          {"learner_critic_and_actor", facts(*programs->whole_program)}};
}

}  // namespace millrace

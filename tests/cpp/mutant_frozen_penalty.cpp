// See mutants.h: the penalty scale of the first launch counts for all.
#define millrace millrace_frozen_penalty
#include "mutants.h"
#include "update_launch.h"

namespace millrace_mutants {
using namespace millrace;

namespace {
bool has_scale = false;
float first_scale = 0;
}  // namespace

const Mutant kFrozenPenalty = {[] { has_scale = false; },
                               [](const void* memory) {
                                 UpdateLaunch launch = *static_cast<const UpdateLaunch*>(memory);
                                 UpdateBlock block = *launch.block;
                                 if (!has_scale) first_scale = block.arguments.penalty_scale;
                                 has_scale = true;
                                 block.arguments.penalty_scale = first_scale;
                                 launch.block = &block;
                                 for (int env = 0; env < launch.num_envs; ++env)
                                   update_robot(SoloTeam(), launch, env);
                               }};

}  // namespace millrace_mutants

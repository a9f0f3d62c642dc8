// See mutants.h: random sources keep the tick of the first launch.
#define millrace millrace_frozen_randomness
#define random_source random_source_of_any_tick
#include "philox.h"
#undef random_source

namespace millrace {
namespace {
bool has_tick = false;
u64 first_tick = 0;
}  // namespace

inline RandomSource random_source(u64 seed, RandomStream stream, u32 environment, u64) {
  return random_source_of_any_tick(seed, stream, environment, first_tick);
}
}  // namespace millrace

#include "mutants.h"
#include "update_launch.h"

namespace millrace_mutants {
using namespace millrace;

const Mutant kFrozenRandomness = {[] { has_tick = false; },
                                  [](const void* memory) {
                                    const UpdateLaunch& launch =
                                        *static_cast<const UpdateLaunch*>(memory);
                                    if (!has_tick) first_tick = launch.block->arguments.tick;
                                    has_tick = true;
                                    for (int env = 0; env < launch.num_envs; ++env)
                                      update_robot(SoloTeam(), launch, env);
                                  }};

}  // namespace millrace_mutants

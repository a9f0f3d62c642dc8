// See mutants.h: what is written to the step counter is lost.
#include <cstring>

#define millrace millrace_frozen_step
#include "state.h"

namespace millrace {
inline int& counter_unless_step(CounterView view, const char* name, int env) {
  thread_local int lost;
  if (std::strcmp(name, "state.counter[kStep]") != 0) return counter_of(view, env);
  lost = counter_of(view, env);
  return lost;
}
}  // namespace millrace

#define counter_of(view, env) counter_unless_step(view, #view, env)
#include "mutants.h"
#include "update_launch.h"

namespace millrace_mutants {
using namespace millrace;

const Mutant kFrozenStep = {[] {},
                            [](const void* memory) {
                              const UpdateLaunch& launch =
                                  *static_cast<const UpdateLaunch*>(memory);
                              for (int env = 0; env < launch.num_envs; ++env)
                                update_robot(SoloTeam(), launch, env);
                            }};

}  // namespace millrace_mutants

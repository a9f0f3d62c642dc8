// See mutants.h: uniform draws of the command stream keep the bounds that they had first.
#define millrace millrace_frozen_command
#define random_uniform random_uniform_within
#include "philox.h"
#undef random_uniform

namespace millrace {
namespace {
constexpr u32 kCommandDraws = 5;
struct Bounds {
  bool is_known;
  float low, high;
};
Bounds first[kCommandDraws] = {};
}  // namespace

inline float random_uniform(RandomSource source, u32 draw, float low, float high) {
  if (source.stream != (u32)kStreamCommand || draw >= kCommandDraws) {
    return random_uniform_within(source, draw, low, high);
  }
  Bounds& bounds = first[draw];
  if (!bounds.is_known) bounds = {true, low, high};
  return random_uniform_within(source, draw, bounds.low, bounds.high);
}
}  // namespace millrace

#include "mutants.h"
#include "update_launch.h"

namespace millrace_mutants {
using namespace millrace;

const Mutant kFrozenCommand = {[] {
                                 for (Bounds& bounds : first) bounds.is_known = false;
                               },
                               [](const void* memory) {
                                 const UpdateLaunch& launch =
                                     *static_cast<const UpdateLaunch*>(memory);
                                 for (int env = 0; env < launch.num_envs; ++env)
                                   update_robot(SoloTeam(), launch, env);
                               }};

}  // namespace millrace_mutants

// The update step (update_body.h): the terms of every task from their one source, a simdgroup per
// environment.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

kernel void update_environments(constant const UpdateArgs& args [[buffer(0)]],
                                uint3 group [[threadgroup_position_in_grid]],
                                uint thread_index [[thread_index_in_threadgroup]]) {
  const int env = (int)(group.x * (kUpdateThreads / kSimdWidth) + thread_index / kSimdWidth);
  if (env >= args.launch.num_envs) return;  // whole simdgroups
  const SimdTeam team = simd_team(thread_index);
  update_robot(team, args.launch, env);
}

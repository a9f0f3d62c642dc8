// UpdateLaunch: one tick of the update step as a backend runs it: the body of update_body.h for
// every environment, rows written straight into a slot. All memory is the backend's. The launch is
// fixed for a run, so that a graph may hold it; everything that differs from tick to tick stands in
// the block that it points to. Freestanding C++14.
#pragma once

#include "update_body.h"

namespace millrace {

// The argument block of the update step.
struct UpdateBlock {
  UpdateArguments arguments;
  MR_DEVICE float* rows;  // of this tick's slot: num_envs rows, row_floats apart
  u64 row_floats;         // at least the row's width
  u64 version;            // the kernel echoes it: proof of which block a replay has read
};

struct UpdateLaunch {
  MR_CONSTANT const UpdateParams* params;
  MR_CONSTANT const UpdateBlock* block;
  StateView state;
  int num_envs;
  MR_DEVICE UpdateOutcome* outcomes;  // num_envs
  MR_DEVICE u64* echo;
};

// One robot of a launch; called by every lane of its team.
template <class Team>
MR_FN void update_robot(MR_THREAD const Team& team, MR_CONSTANT const UpdateLaunch& launch,
                        int env) {
  MR_CONSTANT const UpdateBlock& block = *launch.block;
  MR_DEVICE float* row = block.rows + (u64)env * block.row_floats;
  const UpdateOutcome outcome =
      update_environment(team, *launch.params, block.arguments, launch.state, env, row);
  if (team.leads()) {
    launch.outcomes[env] = outcome;
    if (env == 0) {
      *launch.echo = block.version;
    }
  }
}

}  // namespace millrace

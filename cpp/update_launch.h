// UpdateLaunch: one tick of the update step as a backend runs it: the body of update_body.h for
// every environment, rows written straight into a slot. All memory is the backend's.
#pragma once

#include "update_body.h"

namespace millrace {

struct UpdateLaunch {
  const UpdateParams* params;        // fixed for a run
  const UpdateArguments* arguments;  // the argument block: what differs from tick to tick
  StateView state;
  int num_envs;
  float* rows;              // num_envs rows, row_floats apart
  u64 row_floats;           // at least the row's width
  UpdateOutcome* outcomes;  // num_envs
};

}  // namespace millrace

// Unitree G1 follows velocity commands on flat ground.
#pragma once

#include "task.h"

namespace millrace {

TaskDefinition g1_walk_flat();

}  // namespace millrace

// Unitree G1 follows a reference motion.
#pragma once

#include "task.h"

namespace millrace {

TaskDefinition g1_motion_tracking();

}  // namespace millrace

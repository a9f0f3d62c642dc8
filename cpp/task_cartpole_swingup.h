// A cart swings a hanging pole up and balances it: the quick look.
#pragma once

#include "task.h"

namespace millrace {

TaskDefinition cartpole_swingup();

}  // namespace millrace

// Rows of parameters are brought to their lengths after an optimizer's step, and the target
// networks follow, in one pass.
#pragma once

#include "program_cpu.h"

namespace millrace {

void execute(const NormaliseRowsOp& op, const CpuFrame& frame);

}  // namespace millrace

// Packed replay rows -> the input matrices of networks: mirrored copies, then normalisation.
#pragma once

#include "program_cpu.h"

namespace millrace {

void execute(const UnpackOp& op, const CpuFrame& frame);

}  // namespace millrace

// Root-mean-square normalisation of rows, and its gradients.
#pragma once

#include "program_cpu.h"

namespace millrace {

void execute(const RmsNormForwardOp& op, const CpuFrame& frame);
void execute(const RmsNormBackwardOp& op, const CpuFrame& frame);

}  // namespace millrace

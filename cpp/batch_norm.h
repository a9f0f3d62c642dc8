// Batch normalisation with ReLU and residual, its gradients, and the running statistics that take
// the batch's place when acting.
#pragma once

#include "program_cpu.h"

namespace millrace {

void execute(const BatchNormForwardOp& op, const CpuFrame& frame);
void execute(const BatchNormBackwardOp& op, const CpuFrame& frame);
void execute(const RunningStatisticsOp& op, const CpuFrame& frame);

}  // namespace millrace

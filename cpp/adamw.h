// The optimizer of the CPU backend: gradient norm with the finite verdict, AdamW with the target
// network's moving average, and the temperature's step.
#pragma once

#include "program_cpu.h"

namespace millrace {

void execute(const AdamWOp& op, const CpuFrame& frame);
void execute(const TemperatureOp& op, const CpuFrame& frame);

}  // namespace millrace

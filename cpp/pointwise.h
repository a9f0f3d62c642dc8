// The general ops of the CPU backend: pointwise arithmetic, random fill, copies from the host and
// functions of the host.
#pragma once

#include "program_cpu.h"

namespace millrace {

void execute(const PointwiseOp& op, const CpuFrame& frame);
void execute(const RandomFillOp& op, const CpuFrame& frame);
void execute(const CopyInOp& op, const CpuFrame& frame);
void execute(const HostFunctionOp& op, const CpuFrame& frame);

}  // namespace millrace

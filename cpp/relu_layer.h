// A dense layer's ReLU beside its product. What is not a number stays one, so that the loss shows
// it.
#pragma once

#include "program_cpu.h"

namespace millrace {

void execute(const ReluForwardOp& op, const CpuFrame& frame);
void execute(const ReluBackwardOp& op, const CpuFrame& frame);

}  // namespace millrace

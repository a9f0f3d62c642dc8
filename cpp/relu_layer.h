// The gradient through a dense layer's ReLU, which itself is part of the layer's product.
#pragma once

#include "program_cpu.h"

namespace millrace {

void execute(const ReluBackwardOp& op, const CpuFrame& frame);

}  // namespace millrace

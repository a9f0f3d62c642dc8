// The part of a layer that is not a matrix product: bias, layer normalisation and SiLU in one pass,
// and their gradients.
#pragma once

#include "program_cpu.h"

namespace millrace {

void execute(const LayerForwardOp& op, const CpuFrame& frame);
void execute(const DenseForwardOp& op, const CpuFrame& frame);
void execute(const LayerBackwardOp& op, const CpuFrame& frame);
void execute(const ColumnSumOp& op, const CpuFrame& frame);

}  // namespace millrace

// Matrix products of the CPU backend, by OpenBLAS, and what follows them. The thread count is
// process-wide and configured once, before the first product: results depend on it, so it is
// recorded and never measured.
#pragma once

#include "program_cpu.h"

namespace millrace {

void execute(const GemmOp& op, const CpuFrame& frame);

}  // namespace millrace

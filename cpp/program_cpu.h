// The CPU executor of programs: a loop over the ops, on the calling thread. It is the specification
// that device executors are compared with.
#pragma once

#include "program.h"

namespace millrace {

// What an op's CPU body sees.
struct CpuFrame {
  const Workspace& workspace;
  const Arguments& arguments;

  float* floats(Operand operand) const { return workspace.floats(operand); }
  float& scalar(Operand operand) const { return *workspace.floats(operand); }
};

void run_on_cpu(const Program& program, const Workspace& workspace, const Arguments& arguments);

}  // namespace millrace

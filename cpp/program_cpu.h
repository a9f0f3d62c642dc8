// The CPU executor of programs: a loop over the ops, on the calling thread. It is the specification
// that device executors are compared with.
#pragma once

#include "program.h"

namespace millrace {

// What an op's CPU body sees: where every carrier lies, and the argument block.
class CpuFrame {
 public:
  CpuFrame(void* const* carriers, const Arguments& arguments)
      : arguments(arguments), carriers_(carriers) {}
  CpuFrame(const Workspace& workspace, const Arguments& arguments)
      : CpuFrame(workspace.addresses().data(), arguments) {}

  float* floats(Operand operand) const { return at<float>(operand); }
  int32_t* integers(Operand operand) const { return at<int32_t>(operand); }
  uint64_t* counters(Operand operand) const { return at<uint64_t>(operand); }
  float& scalar(Operand operand) const { return *floats(operand); }

  const Arguments& arguments;

 private:
  template <class Value>
  Value* at(Operand operand) const {
    return static_cast<Value*>(carriers_[operand.carrier]) + operand.offset;
  }

  void* const* carriers_;
};

void run_on_cpu(const Program& program, const CpuFrame& frame);

}  // namespace millrace

// The CPU executor of programs: a loop over the ops, on the calling thread. It is the specification
// that device executors are compared with.
#pragma once

#include "program.h"

namespace millrace {

// What an op's CPU body sees: where every carrier lies, the argument block, and what the host
// brings to this run.
class CpuFrame {
 public:
  CpuFrame(void* const* carriers, const Arguments& arguments, const LaunchInputs& inputs = {})
      : arguments(arguments), inputs(inputs), carriers_(carriers) {}
  CpuFrame(const Workspace& workspace, const Arguments& arguments, const LaunchInputs& inputs = {})
      : CpuFrame(workspace.addresses().data(), arguments, inputs) {}

  float* floats(Operand operand) const { return at<float>(operand); }
  int32_t* integers(Operand operand) const { return at<int32_t>(operand); }
  uint64_t* counters(Operand operand) const { return at<uint64_t>(operand); }
  float& scalar(Operand operand) const { return *floats(operand); }

  // Of an operand that may be an input.
  const float* source(Operand operand) const {
    if (!operand.is_input()) return floats(operand);
    const float* const* all = inputs.block_inputs != nullptr ? inputs.block_inputs : inputs.inputs;
    return all[operand.input()] + operand.offset;
  }
  float scalar(const ScalarSource& source) const {
    switch (source.from) {
      case ScalarSource::From::kConstant:
        return source.constant;
      case ScalarSource::From::kHost:
        return inputs.scalars[source.number];
      case ScalarSource::From::kBlock:
        return inputs.block_scalars[source.number];
      case ScalarSource::From::kCarrier:
        return scalar(source.place);
    }
    return source.constant;
  }

  const Arguments& arguments;
  const LaunchInputs inputs;

 private:
  template <class Value>
  Value* at(Operand operand) const {
    return static_cast<Value*>(carriers_[operand.carrier]) + operand.offset;
  }

  void* const* carriers_;
};

void run_on_cpu(const Program& program, const CpuFrame& frame);

}  // namespace millrace

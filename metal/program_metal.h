// The Metal executor of programs: every op becomes one or a few dispatches, in order. One pair of
// files per family of ops: NAME.metal has the kernels, NAME_metal.cpp what they are launched with;
// program_metal.cpp walks the records. Kernels read what varies between two runs from the argument
// block in device memory. Sums have a fixed order: no atomic additions of floats, and grids that
// depend on the shapes alone, so a replay gives the bits of an eager run.
//
// Pure C++, without Metal's types. All ops share the scratch: what an op leaves there is gone with
// the next.
#pragma once

#include "metal_dispatch.h"
#include "program_launch.h"

namespace millrace {

struct MetalFrame {
  void* const* carriers;  // addresses of the device, as all below
  const Arguments* arguments;
  float* scratch;
  LaunchInputs inputs;

  float* floats(Operand operand) const { return at<float>(operand); }
  const int* integers(Operand operand) const { return at<int>(operand); }
  u64* counter(Operand operand) const { return at<u64>(operand); }
  // Null for an operand that the op does not use.
  template <class Value>
  Value* at(Operand operand) const {
    return operand.used() ? static_cast<Value*>(carriers[operand.carrier]) + operand.offset
                          : nullptr;
  }
};

uint64_t metal_scratch_bytes(const Program& program);

// Of all ops of the launch. Returns the number of the first record that has no kernel, a function
// of the host, or the number of records.
size_t add_program(MetalDispatches& to, const ProgramLaunch& launch);

}  // namespace millrace

// Our Metal kernels as functions of the host, by name: what a fake device calls where a GPU would
// run them. The pointers in the argument struct must be addresses that the host can read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fibres.h"

namespace metal_shim {

using device_shim::Turns;

struct Kernel {
  std::string name;
  size_t argument_bytes;  // of its struct of metal_args.h
  bool has_threadgroup_memory;
  void (*run)(const void* arguments, const uint32_t (&threadgroup)[3], uint32_t thread,
              float* threadgroup_memory);
};

const std::vector<Kernel>& kernels();
// Null for a name that no .metal file has.
const Kernel* find_kernel(const std::string& name);

struct Launch {
  uint32_t threadgroups[3];
  uint32_t threads_of_a_threadgroup;
  uint32_t threadgroup_bytes;
  Turns turns = Turns::kForward;
};

// Runs all threadgroups one after the other on the calling thread. Threadgroup memory begins as
// numbers that are none. Throws std::logic_error for what a GPU would not forgive.
void run_kernel(const Kernel& kernel, const void* arguments, const Launch& launch);

}  // namespace metal_shim

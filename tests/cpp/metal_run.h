// Runs what would be dispatched to a Metal device on the CPU, by the shim: for tests whose carriers
// lie in the host's memory.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>

#include "metal_dispatch.h"
#include "metal_kernels.h"

namespace millrace {

inline void run_dispatch(const MetalDispatch& one, device_shim::Turns turns) {
  if (one.kernel == nullptr) {
    std::memcpy(one.copy_to, one.copy_from_host, one.copy_bytes);
    return;
  }
  const metal_shim::Kernel* const kernel = metal_shim::find_kernel(one.kernel);
  if (kernel == nullptr) throw std::logic_error(std::string("no kernel ") + one.kernel);
  if (kernel->argument_bytes != one.arguments.size()) {
    throw std::logic_error(kernel->name + " takes arguments of another size");
  }
  metal_shim::run_kernel(*kernel, one.arguments.data(),
                         {{one.threadgroups[0], one.threadgroups[1], one.threadgroups[2]},
                          one.threads,
                          one.threadgroup_bytes,
                          turns});
}

inline void run_dispatches(const MetalDispatches& dispatches,
                           device_shim::Turns turns = device_shim::Turns::kForward) {
  for (const MetalDispatch& one : dispatches.all()) run_dispatch(one, turns);
}

}  // namespace millrace

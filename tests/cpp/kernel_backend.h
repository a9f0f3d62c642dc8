// The CPU as a device whose gather, update step and programs are a GPU's kernels, run by a shim:
// what the kernels compute, without the GPU. Metal's are here, without the host side that launches
// them on a Mac; every other launch gives the threads their turns backwards, so that a result that
// depends on them shows. CUDA's come with what launches them: tests/shim/cuda/cuda_kernels.h.
#pragma once

#include "backend.h"
#include "cuda_kernels.h"
#include "metal_run.h"
#include "program_launch.h"
#include "program_metal.h"

namespace millrace {

inline const BackendApi& metal_kernels() {
  static const BackendApi api = [] {
    using device_shim::Turns;
    static const auto run = [](const MetalDispatches& dispatches) {
      static thread_local Turns turns = Turns::kBackward;
      turns = turns == Turns::kForward ? Turns::kBackward : Turns::kForward;
      run_dispatches(dispatches, turns);
      return 0;
    };
    BackendApi table = backend_cpu();
    table.name = "metal_kernels";
    table.gather_async = [](void*, const Gather* gather) {
      MetalDispatches dispatches;
      add_gather(dispatches, *gather);
      return run(dispatches);
    };
    table.update_async = [](void*, const UpdateLaunch* launch) {
      MetalDispatches dispatches;
      add_update(dispatches, *launch);
      return run(dispatches);
    };
    table.program_scratch_bytes = [](const Program* program) {
      return metal_scratch_bytes(*program);
    };
    table.program_async = [](void*, const ProgramLaunch* launch) {
      MetalDispatches dispatches;
      if (add_program(dispatches, *launch) < launch->program->records().size()) return 1;
      return run(dispatches);
    };
    return table;
  }();
  return api;
}

}  // namespace millrace

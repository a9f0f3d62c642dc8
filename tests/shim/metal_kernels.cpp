// All kernels in one source, as the device compiles them: their names are all different.
#include "metal_kernels.h"

#include <stdexcept>
//
#include "metal_stdlib"
//
#include "copy.metal"
#include "gather.metal"
#include "update.metal"

namespace metal_shim {
namespace {

// A kernel's parameters: arguments, threadgroup_position_in_grid, thread_index_in_threadgroup, and
// threadgroup memory if it wants any.
template <auto kFunction>
struct Entry;

template <class Arguments, void (*kFunction)(const Arguments&, uint3, uint)>
struct Entry<kFunction> {
  static constexpr size_t kBytes = sizeof(Arguments);
  static constexpr bool kHasMemory = false;
  static void run(const void* arguments, const uint32_t (&group)[3], uint32_t index, float*) {
    kFunction(*static_cast<const Arguments*>(arguments), {group[0], group[1], group[2]}, index);
  }
};

template <class Arguments, void (*kFunction)(const Arguments&, uint3, uint, float*)>
struct Entry<kFunction> {
  static constexpr size_t kBytes = sizeof(Arguments);
  static constexpr bool kHasMemory = true;
  static void run(const void* arguments, const uint32_t (&group)[3], uint32_t index,
                  float* memory) {
    kFunction(*static_cast<const Arguments*>(arguments), {group[0], group[1], group[2]}, index,
              memory);
  }
};

#define MR_KERNEL(name) \
  Kernel { #name, Entry < name> ::kBytes, Entry < name> ::kHasMemory, Entry < name> ::run }

}  // namespace

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all = {
      MR_KERNEL(gather_rows),         MR_KERNEL(gather_rows_aligned), MR_KERNEL(gather_columns),
      MR_KERNEL(copy_rows_by_16),     MR_KERNEL(copy_rows_by_4),      MR_KERNEL(copy_rows_by_1),
      MR_KERNEL(update_environments),
  };
  return all;
}

const Kernel* find_kernel(const std::string& name) {
  for (const Kernel& one : kernels()) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

namespace {

struct Threadgroup {
  const Kernel* function;
  const void* arguments;
  uint32_t position[3];
  float* memory;
};

void run_thread(void* context, uint32_t index) {
  const Threadgroup& group = *static_cast<Threadgroup*>(context);
  group.function->run(group.arguments, group.position, index, group.memory);
}

}  // namespace

void run_kernel(const Kernel& function, const void* arguments, const Launch& launch) {
  constexpr uint32_t kMaxThreads = 1024, kMaxThreadgroupBytes = 32 << 10;
  if (launch.threads_of_a_threadgroup > kMaxThreads ||
      launch.threadgroup_bytes > kMaxThreadgroupBytes || launch.threadgroup_bytes % 16 != 0) {
    throw std::logic_error(function.name + ": at most 1,024 threads and 32 KiB in multiples of 16");
  }
  if (function.has_threadgroup_memory != (launch.threadgroup_bytes > 0)) {
    throw std::logic_error(function.name + ": threadgroup memory, or none, against its signature");
  }
  std::vector<float> memory(launch.threadgroup_bytes / sizeof(float));
  Threadgroup group{&function, arguments, {0, 0, 0}, memory.data()};
  const uint32_t(&grid)[3] = launch.threadgroups;
  for (group.position[2] = 0; group.position[2] < grid[2]; ++group.position[2]) {
    for (group.position[1] = 0; group.position[1] < grid[1]; ++group.position[1]) {
      for (group.position[0] = 0; group.position[0] < grid[0]; ++group.position[0]) {
        if (!memory.empty()) std::memset(memory.data(), 0xFF, launch.threadgroup_bytes);
        run_threadgroup(launch.threads_of_a_threadgroup, launch.turns, run_thread, &group);
      }
    }
  }
}

}  // namespace metal_shim

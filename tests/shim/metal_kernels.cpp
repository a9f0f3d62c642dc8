// All kernels in one source, as the device compiles them: their names are all different.
#include "metal_kernels.h"

#include <stdexcept>
//
#include "metal_stdlib"
//
#include "action.metal"
#include "batch.metal"
#include "batch_norm.metal"
#include "column_sum.metal"
#include "copy.metal"
#include "gather.metal"
#include "gemm.metal"
#include "layer.metal"
#include "optimizer.metal"
#include "pointwise.metal"
#include "relu.metal"
#include "rms_norm.metal"
#include "row_norm.metal"
#include "scalar.metal"
#include "statistics.metal"
#include "update.metal"
#include "value.metal"

namespace metal_shim {
namespace {

// A kernel's parameters: arguments, threadgroup_position_in_grid, thread_index_in_threadgroup, and
// threadgroup memory if it wants any.
template <auto kFunction>
struct Entry;

template <class Arguments, void (*kFunction)(const Arguments&, metal::uint3, uint)>
struct Entry<kFunction> {
  static constexpr size_t kBytes = sizeof(Arguments);
  static constexpr bool kHasMemory = false;
  static void run(const void* arguments, const uint32_t (&group)[3], uint32_t index, float*) {
    kFunction(*static_cast<const Arguments*>(arguments), {group[0], group[1], group[2]}, index);
  }
};

template <class Arguments, void (*kFunction)(const Arguments&, metal::uint3, uint, volatile float*)>
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
      MR_KERNEL(sample_actions),
      MR_KERNEL(action_gradients),
      MR_KERNEL(sum_deviations),
      MR_KERNEL(mean_of_parts),
      MR_KERNEL(unpack_rows),
      MR_KERNEL(batch_norm_sums),
      MR_KERNEL(batch_norm_statistics),
      MR_KERNEL(batch_norm_forward),
      MR_KERNEL(batch_norm_gradient_sums),
      MR_KERNEL(batch_norm_affine),
      MR_KERNEL(batch_norm_backward),
      MR_KERNEL(batch_norm_shared_backward),
      MR_KERNEL(move_statistics),
      MR_KERNEL(column_sum),
      MR_KERNEL(add_chunks),
      MR_KERNEL(copy_rows_by_16),
      MR_KERNEL(copy_rows_by_4),
      MR_KERNEL(copy_rows_by_1),
      MR_KERNEL(gather_rows_aligned),
      MR_KERNEL(gather_rows),
      MR_KERNEL(gather_columns),
      MR_KERNEL(multiply),
      MR_KERNEL(add_pieces),
      MR_KERNEL(layer_forward),
      MR_KERNEL(layer_parameter_sums),
      MR_KERNEL(layer_backward),
      MR_KERNEL(sum_squares),
      MR_KERNEL(finish_norm),
      MR_KERNEL(begin_step),
      MR_KERNEL(adamw),
      MR_KERNEL(step_temperature),
      MR_KERNEL(pointwise),
      MR_KERNEL(random_fill),
      MR_KERNEL(relu_backward),
      MR_KERNEL(rms_forward),
      MR_KERNEL(rms_backward),
      MR_KERNEL(rms_gain_sums),
      MR_KERNEL(scale_rows),
      MR_KERNEL(scalar_targets),
      MR_KERNEL(scalar_critic_gradients),
      MR_KERNEL(scalar_critic_loss),
      MR_KERNEL(scalar_actor_gradients),
      MR_KERNEL(scalar_actor_loss),
      MR_KERNEL(fold_scalars),
      MR_KERNEL(update_environments),
      MR_KERNEL(project_targets),
      MR_KERNEL(critic_losses),
      MR_KERNEL(finish_critic_loss),
      MR_KERNEL(actor_losses),
      MR_KERNEL(finish_actor_loss),
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
        device_shim::spoil(memory.data(), launch.threadgroup_bytes);
        device_shim::run_threadgroup(launch.threads_of_a_threadgroup, launch.turns, run_thread,
                                     &group);
      }
    }
  }
}

}  // namespace metal_shim

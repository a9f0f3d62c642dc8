// Tanh-squashed Gaussian actions: a warp computes one row.
#include <algorithm>

#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "reduction_cuda.cuh"
#include "stored.cuh"
#include "tanh_gaussian_body.h"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kThreads = 128;
constexpr int kRowsOfABlock = kThreads / kWarp;

template <class Stored>
struct Sample {
  int rows, actions, heads_stride;
  ActionDensity density;
  const float *heads, *bias;
  int is_deterministic;
  RandomStream stream;
  u32 first_normal;
  const u64* drawn_at;
  Stored* action;
  int action_stride;
  float* noise;
  float* log_probability;
};

template <bool kIsExact, class Stored>
__global__ void __launch_bounds__(kThreads)
    sample_actions(const Arguments* arguments, const Sample<Stored> sample) {
  wait_for_kernels_before();
  const WarpTeam team;
  const int r = static_cast<int>(blockIdx.x) * kRowsOfABlock + threadIdx.x / kWarp;
  if (r >= sample.rows) return;
  const u64 row = static_cast<u64>(r);
  float* noise = sample.noise + row * sample.actions;
  if (!sample.is_deterministic) {
    const u64 tick = sample.drawn_at != nullptr ? sample.drawn_at[row] : arguments->tick;
    const RandomSource source =
        random_source(arguments->seed, sample.stream, static_cast<u32>(r), tick);
    draw_noise_row(team, source, sample.first_normal, noise, sample.actions);
  }
  const float log_probability = sample_action_row<kIsExact>(
      team, sample.density, sample.heads + row * sample.heads_stride, sample.bias, noise,
      sample.action + row * sample.action_stride, sample.actions);
  if (team.leads() && sample.log_probability != nullptr) {
    sample.log_probability[row] = log_probability;
  }
}

template <class Stored>
struct Heads {
  int rows, actions, heads_stride, action_gradient_stride;
  ActionDensity density;
  const float *heads, *bias, *noise, *action_gradient, *log_alpha;
  Stored* heads_gradient;
};

// A warp takes a row.
template <bool kIsExact, class Stored>
__global__ void __launch_bounds__(kThreads) action_gradients(const Heads<Stored> heads) {
  wait_for_kernels_before();
  const int r =
      static_cast<int>(blockIdx.x) * kRowsOfABlock + static_cast<int>(threadIdx.x) / kWarp;
  if (r >= heads.rows) return;
  const u64 row = static_cast<u64>(r);
  const float alpha_share = mr_exp(*heads.log_alpha) / static_cast<float>(heads.rows);
  action_gradient_row<kIsExact>(
      WarpTeam(), heads.density, heads.heads + row * heads.heads_stride, heads.bias,
      heads.noise + row * heads.actions, heads.action_gradient + row * heads.action_gradient_stride,
      alpha_share, heads.heads_gradient + row * heads.heads_stride, heads.actions);
}

struct Deviations {
  int rows, actions, heads_stride;
  ActionDensity density;
  const float *heads, *bias;
};

__global__ void __launch_bounds__(kPartThreads) sum_deviations(const Deviations of, float* parts) {
  wait_for_kernels_before();
  __shared__ float room[kPartWarps];
  float deviations = 0.0f;
  for (int r = first_row_of_warp(); r < of.rows; r += kRowsBetween) {
    deviations +=
        deviations_of_row(WarpTeam(), of.density, of.heads + static_cast<u64>(r) * of.heads_stride,
                          of.bias, of.actions);
  }
  const float sum = block_sum(WarpTeam().leads() ? deviations : 0.0f, room);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kParts)
    mean_of_parts(const float* parts, int part_count, float count, float* mean) {
  wait_for_kernels_before();
  __shared__ float room[kParts / kWarp];
  const float sum = sum_of_parts(parts, room, part_count);
  if (threadIdx.x == 0) *mean = sum / count;
}

}  // namespace

u64 scratch_floats(const MeanDeviationOp&) { return kParts; }

cudaError_t launch_op(const CudaFrame& frame, const SampleActionOp& op) {
  return with_stored(frame, op.action, [&](auto* action) {
    using Stored = std::remove_pointer_t<decltype(action)>;
    const Sample<Stored> sample = {op.rows,
                                   op.actions,
                                   op.heads_stride,
                                   op.density,
                                   frame.floats(op.heads),
                                   frame.floats(op.bias),
                                   op.deterministic ? 1 : 0,
                                   op.stream,
                                   op.first_normal,
                                   frame.counter(op.drawn_at),
                                   action,
                                   op.action_stride,
                                   frame.floats(op.noise),
                                   frame.floats(op.log_probability)};
    return launch_kernel(
        frame.stream, blocks_for(op.rows, kRowsOfABlock), kThreads, 0,
        op.density.is_exact ? sample_actions<true, Stored> : sample_actions<false, Stored>,
        frame.arguments, sample);
  });
}

cudaError_t launch_op(const CudaFrame& frame, const ActionGradientOp& op) {
  return with_stored(frame, op.heads_gradient, [&](auto* heads_gradient) {
    using Stored = std::remove_pointer_t<decltype(heads_gradient)>;
    const Heads<Stored> heads = {op.rows,
                                 op.actions,
                                 op.heads_stride,
                                 op.action_gradient_stride,
                                 op.density,
                                 frame.floats(op.heads),
                                 frame.floats(op.bias),
                                 frame.floats(op.noise),
                                 frame.floats(op.action_gradient),
                                 frame.floats(op.log_alpha),
                                 heads_gradient};
    return launch_kernel(
        frame.stream, blocks_for(op.rows, kRowsOfABlock), kThreads, 0,
        op.density.is_exact ? action_gradients<true, Stored> : action_gradients<false, Stored>,
        heads);
  });
}

cudaError_t launch_op(const CudaFrame& frame, const MeanDeviationOp& op) {
  const Deviations deviations = {op.rows,
                                 op.actions,
                                 op.heads_stride,
                                 op.density,
                                 frame.floats(op.heads),
                                 frame.floats(op.bias)};
  // No block without a row: others run beside.
  const unsigned parts =
      std::min(blocks_for(static_cast<u64>(op.rows), kPartWarps), static_cast<unsigned>(kParts));
  const cudaError_t code = launch_kernel(frame.stream, parts, kPartThreads, 0, sum_deviations,
                                         deviations, frame.scratch);
  if (code != cudaSuccess) return code;
  return launch_kernel(frame.stream, 1, kParts, 0, mean_of_parts, frame.scratch,
                       static_cast<int>(parts),
                       static_cast<float>(op.rows) * static_cast<float>(op.actions),
                       frame.floats(op.mean_deviation));
}

}  // namespace millrace

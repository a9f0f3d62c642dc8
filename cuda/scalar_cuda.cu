// Scalar twin critics: a thread computes a row. The losses are one block each, which walks over all
// rows and adds them up in an order that depends on their number alone: a row is a few numbers, and
// a second launch would cost more than the walk.
#include <type_traits>

#include "elementary.h"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "scalar_critic_body.h"
#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kTargetThreads = 128;
constexpr int kLossThreads = 1024;

struct Values {
  int rows, groups, stride;
  const float *values, *bias;

  // Where a row's values and their gradients begin.
  __device__ u64 first_of(int r) const { return static_cast<u64>(r) * groups * stride; }
  __device__ float at(int r, int group) const {
    return values[first_of(r) + group * stride] + bias[group * stride];
  }
  __device__ int least_of(int r) const {
    return least_group(values + first_of(r), bias, groups, stride);
  }
};

struct Reward {
  int source_rows, reward_column, done_column, truncated_column;
  float gamma;
  const float *log_probability, *log_alpha;
};

__global__ void __launch_bounds__(kTargetThreads)
    scalar_targets(const Arguments* arguments, const Values next, const Reward reward,
                   float* target) {
  wait_for_kernels_before();
  const int r = static_cast<int>(blockIdx.x) * kTargetThreads + static_cast<int>(threadIdx.x);
  if (r >= next.rows) return;
  const float* row =
      arguments->rows + static_cast<u64>(r % reward.source_rows) * arguments->row_stride;
  const float soft_value =
      next.at(r, next.least_of(r)) - mr_exp(*reward.log_alpha) * reward.log_probability[r];
  target[r] =
      soft_target(row[reward.reward_column] * arguments->reward_scale, row[reward.done_column],
                  row[reward.truncated_column], reward.gamma, soft_value);
}

enum class Combine { kSum, kMaximum };

// Each of kCount values over all threads of the block: lane 0 of warp i gets value i, the others'
// are undefined. One barrier for all of them.
template <int kCount>
__device__ float combined(const float (&values)[kCount], const Combine (&how)[kCount],
                          float (&room)[kCount][kLossThreads / kWarp]) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float value = how[i] == Combine::kSum ? warp_sum(values[i]) : warp_maximum(values[i]);
    if (lane == 0) room[i][warp] = value;
  }
  __syncthreads();
  if (warp >= kCount) return 0.0f;
  const float value = room[warp][lane];
  return how[warp] == Combine::kSum ? warp_sum(value) : warp_maximum(value);
}

struct CriticScalars {
  float *loss, *value_mean, *value_max, *value_min;
};

template <class Stored>
__global__ void __launch_bounds__(kLossThreads)
    scalar_critic_loss(const Values now, const float* target, Stored* gradient,
                       const CriticScalars scalars) {
  wait_for_kernels_before();
  __shared__ float rooms[4][kLossThreads / kWarp];
  static_assert(kLossThreads / kWarp == kWarp, "a warp combines what the warps leave");
  const float share = 1.0f / static_cast<float>(now.rows);
  float loss = 0.0f, value_sum = 0.0f, top = -mr_infinity(), bottom = -mr_infinity();
  for (int r = static_cast<int>(threadIdx.x); r < now.rows; r += kLossThreads) {
    for (int g = 0; g < now.groups; ++g) {
      const float value = now.at(r, g);
      const float error = value - target[r];
      loss += error * error;
      gradient[now.first_of(r) + g * now.stride] = static_cast<Stored>(2.0f * share * error);
      value_sum += value;
      top = mr_max(value, top);
      bottom = mr_max(-value, bottom);
    }
  }
  constexpr Combine kHow[] = {Combine::kSum, Combine::kSum, Combine::kMaximum, Combine::kMaximum};
  const float found = combined({loss, value_sum, top, bottom}, kHow, rooms);
  if (threadIdx.x % kWarp != 0) return;
  switch (threadIdx.x / kWarp) {
    case 0:
      *scalars.loss = found * share;
      return;
    case 1:
      *scalars.value_mean = found * share / static_cast<float>(now.groups);
      return;
    case 2:
      *scalars.value_max = found;
      return;
    case 3:
      *scalars.value_min = -found;
      return;
  }
}

template <class Stored>
__global__ void __launch_bounds__(kLossThreads)
    scalar_actor_loss(const Values now, const float* log_probability, const float* log_alpha,
                      Stored* gradient, float* loss, float* entropy) {
  wait_for_kernels_before();
  __shared__ float rooms[2][kLossThreads / kWarp];
  const float share = 1.0f / static_cast<float>(now.rows);
  float value_sum = 0.0f, log_probability_sum = 0.0f;
  for (int r = static_cast<int>(threadIdx.x); r < now.rows; r += kLossThreads) {
    const int least = now.least_of(r);
    value_sum += now.at(r, least);
    log_probability_sum += log_probability[r];
    for (int g = 0; g < now.groups; ++g) {
      gradient[now.first_of(r) + g * now.stride] = static_cast<Stored>(g == least ? -share : 0.0f);
    }
  }
  const float alpha = mr_exp(*log_alpha);
  constexpr Combine kHow[] = {Combine::kSum, Combine::kSum};
  const float found =
      combined({alpha * log_probability_sum - value_sum, log_probability_sum}, kHow, rooms);
  if (threadIdx.x == 0) *loss = found * share;
  if (threadIdx.x == kWarp) *entropy = -found * share;
}

template <class AnyOp>
Values values_of(const CudaFrame& frame, const AnyOp& op) {
  return {op.rows, op.groups, op.value_stride, frame.floats(op.values), frame.floats(op.bias)};
}

}  // namespace

cudaError_t launch_op(const CudaFrame& frame, const ScalarTargetOp& op) {
  const Reward reward = {op.source_rows,
                         op.reward_column,
                         op.done_column,
                         op.truncated_column,
                         op.gamma,
                         frame.floats(op.log_probability),
                         frame.floats(op.log_alpha)};
  return launch_kernel(frame.stream, blocks_for(static_cast<u64>(op.rows), kTargetThreads),
                       kTargetThreads, 0, scalar_targets, frame.arguments, values_of(frame, op),
                       reward, frame.floats(op.target));
}

cudaError_t launch_op(const CudaFrame& frame, const ScalarCriticLossOp& op) {
  const CriticScalars scalars = {frame.floats(op.loss), frame.floats(op.value_mean),
                                 frame.floats(op.value_max), frame.floats(op.value_min)};
  return with_stored(frame, op.values_gradient, [&](auto* gradient) {
    using Stored = std::remove_pointer_t<decltype(gradient)>;
    return launch_kernel(frame.stream, 1, kLossThreads, 0, scalar_critic_loss<Stored>,
                         values_of(frame, op), frame.floats(op.target), gradient, scalars);
  });
}

cudaError_t launch_op(const CudaFrame& frame, const ScalarActorLossOp& op) {
  return with_stored(frame, op.values_gradient, [&](auto* gradient) {
    using Stored = std::remove_pointer_t<decltype(gradient)>;
    return launch_kernel(frame.stream, 1, kLossThreads, 0, scalar_actor_loss<Stored>,
                         values_of(frame, op), frame.floats(op.log_probability),
                         frame.floats(op.log_alpha), gradient, frame.floats(op.loss),
                         frame.floats(op.entropy));
  });
}

}  // namespace millrace

// Scalar twin critics: a warp computes a row, of all critics, from the hidden layer to its
// gradient. The losses' numbers are added up by one block, which walks over what the rows left: a
// row is a few numbers then.
#include <type_traits>

#include "elementary.h"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "scalar_critic_body.h"
#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kRowThreads = 128;
constexpr int kRowsOfABlock = kRowThreads / kWarp;
constexpr int kLossThreads = 1024;

template <class Stored>
struct Head {
  int rows, groups, width;
  const Stored* hidden;
  const float *weight, *bias;
  u64 weight_distance, bias_distance;
  Stored* hidden_gradient;  // or null
  int is_relu;

  __device__ u64 line(int r, int g) const { return static_cast<u64>(r) * groups + g; }
};

// Calls each(column, pack of hidden, pack of weight) for the lane's vectors of a row's group.
template <int kVector, class Stored, class Each>
__device__ void each_vector(const Head<Stored>& head, int r, int g, const Each& each) {
  const Stored* const hidden = head.hidden + head.line(r, g) * head.width;
  const float* const weight = head.weight + g * head.weight_distance;
  for (int i = WarpTeam().lane() * kVector; i < head.width; i += kWarp * kVector) {
    each(i, *reinterpret_cast<const Packed<Stored, kVector>*>(hidden + i),
         *reinterpret_cast<const Packed<float, kVector>*>(weight + i));
  }
}

// To all lanes.
template <int kVector, class Stored>
__device__ float value_of(const Head<Stored>& head, int r, int g) {
  float sum = 0.0f;
  each_vector<kVector>(head, r, g, [&](int, const auto& hidden, const auto& weight) {
#pragma unroll
    for (int j = 0; j < kVector; ++j) sum += to_float(hidden.values[j]) * weight.values[j];
  });
  return warp_sum(sum) + head.bias[g * head.bias_distance];
}

template <int kVector, class Stored>
__device__ LeastValue least_of(const Head<Stored>& head, int r) {
  LeastValue least{};
  for (int g = 0; g < head.groups; ++g) least.see(value_of<kVector>(head, r, g), g);
  return least;
}

template <int kVector, class Stored>
__device__ void pass_back(const Head<Stored>& head, int r, int g, float value_gradient) {
  Stored* const gradient = head.hidden_gradient + head.line(r, g) * head.width;
  each_vector<kVector>(head, r, g, [&](int i, const auto& hidden, const auto& weight) {
    float values[kVector];
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      const bool is_cut = head.is_relu && !(to_float(hidden.values[j]) > 0.0f);
      values[j] = is_cut ? 0.0f : value_gradient * weight.values[j];
    }
    *reinterpret_cast<Packed<Stored, kVector>*>(gradient + i) = packed<Stored, kVector>(values);
  });
}

__device__ int own_row() {
  return static_cast<int>(blockIdx.x) * kRowsOfABlock + static_cast<int>(threadIdx.x) / kWarp;
}

struct Reward {
  int source_rows, reward_column, done_column, truncated_column;
  float gamma;
  const float *log_probability, *log_alpha;
};

template <int kVector, class Stored>
__global__ void __launch_bounds__(kRowThreads)
    scalar_targets(const Arguments* arguments, const Head<Stored> next, const Reward reward,
                   float* target) {
  wait_for_kernels_before();
  const int r = own_row();
  if (r >= next.rows) return;
  const LeastValue least = least_of<kVector>(next, r);
  if (!WarpTeam().leads()) return;
  const float* row =
      arguments->rows + static_cast<u64>(r % reward.source_rows) * arguments->row_stride;
  const float soft_value = least.value - mr_exp(*reward.log_alpha) * reward.log_probability[r];
  target[r] =
      soft_target(row[reward.reward_column] * arguments->reward_scale, row[reward.done_column],
                  row[reward.truncated_column], reward.gamma, soft_value);
}

// Leaves the values, [row][group].
template <int kVector, class Stored>
__global__ void __launch_bounds__(kRowThreads)
    scalar_critic_gradients(const Head<Stored> head, const float* target, Stored* values_gradient,
                            float* values) {
  wait_for_kernels_before();
  const int r = own_row();
  if (r >= head.rows) return;
  const float share = 2.0f / static_cast<float>(head.rows);
  for (int g = 0; g < head.groups; ++g) {
    const float value = value_of<kVector>(head, r, g);
    const float gradient = share * (value - target[r]);
    pass_back<kVector>(head, r, g, gradient);
    if (!WarpTeam().leads()) continue;
    values[head.line(r, g)] = value;
    values_gradient[head.line(r, g) * head.bias_distance] = static_cast<Stored>(gradient);
  }
}

// Leaves each row's smallest value.
template <int kVector, class Stored>
__global__ void __launch_bounds__(kRowThreads)
    scalar_actor_gradients(const Head<Stored> head, float* least_values) {
  wait_for_kernels_before();
  const int r = own_row();
  if (r >= head.rows) return;
  const float share = 1.0f / static_cast<float>(head.rows);
  const LeastValue least = least_of<kVector>(head, r);
  for (int g = 0; g < head.groups; ++g) {
    pass_back<kVector>(head, r, g, g == least.group ? -share : 0.0f);
  }
  if (WarpTeam().leads()) least_values[r] = least.value;
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

__global__ void __launch_bounds__(kLossThreads)
    scalar_critic_loss(int rows, int groups, const float* values, const float* target,
                       const CriticScalars scalars) {
  wait_for_kernels_before();
  __shared__ float rooms[4][kLossThreads / kWarp];
  static_assert(kLossThreads / kWarp == kWarp, "a warp combines what the warps leave");
  const float share = 1.0f / static_cast<float>(rows);
  float loss = 0.0f, value_sum = 0.0f, top = -mr_infinity(), bottom = -mr_infinity();
  for (int r = static_cast<int>(threadIdx.x); r < rows; r += kLossThreads) {
    for (int g = 0; g < groups; ++g) {
      const float value = values[static_cast<u64>(r) * groups + g];
      const float error = value - target[r];
      loss += error * error;
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
      *scalars.value_mean = found * share / static_cast<float>(groups);
      return;
    case 2:
      *scalars.value_max = found;
      return;
    case 3:
      *scalars.value_min = -found;
      return;
  }
}

__global__ void __launch_bounds__(kLossThreads)
    scalar_actor_loss(int rows, const float* least_values, const float* log_probability,
                      const float* log_alpha, float* loss, float* entropy) {
  wait_for_kernels_before();
  __shared__ float rooms[2][kLossThreads / kWarp];
  const float share = 1.0f / static_cast<float>(rows);
  const float alpha = mr_exp(*log_alpha);
  float loss_sum = 0.0f, log_probability_sum = 0.0f;
  for (int r = static_cast<int>(threadIdx.x); r < rows; r += kLossThreads) {
    loss_sum += alpha * log_probability[r] - least_values[r];
    log_probability_sum += log_probability[r];
  }
  constexpr Combine kHow[] = {Combine::kSum, Combine::kSum};
  const float found = combined({loss_sum, log_probability_sum}, kHow, rooms);
  if (threadIdx.x == 0) *loss = found * share;
  if (threadIdx.x == kWarp) *entropy = -found * share;
}

// Calls launch(head, vector) with the head as it is stored, and how many columns a lane takes at a
// time.
template <class Launch>
cudaError_t with_head(const CudaFrame& frame, const ScalarHead& op,
                      const ScalarHeadGradient& gradient, const Launch& launch) {
  return with_stored(frame, op.hidden, [&](const auto* hidden) {
    using Stored = std::remove_const_t<std::remove_pointer_t<decltype(hidden)>>;
    constexpr int kVector = 16 / sizeof(Stored);
    const Head<Stored> head = {op.rows,
                               op.groups,
                               op.width,
                               hidden,
                               frame.floats(op.weight),
                               frame.floats(op.bias),
                               op.weight_distance,
                               op.bias_distance,
                               frame.at<Stored>(gradient.hidden),
                               gradient.is_relu ? 1 : 0};
    const bool is_wide = op.width % kVector == 0 && op.weight_distance % kVector == 0 &&
                         are_aligned({hidden, head.weight, head.hidden_gradient}, 16);
    return is_wide ? launch(head, std::integral_constant<int, kVector>())
                   : launch(head, std::integral_constant<int, 1>());
  });
}

template <class... Parameters, class... Arguments>
cudaError_t launch_for_rows(const CudaFrame& frame, const ScalarHead& op,
                            void (*kernel)(Parameters...), Arguments&&... arguments) {
  return launch_kernel(frame.stream, blocks_for(static_cast<u64>(op.rows), kRowsOfABlock),
                       kRowThreads, 0, kernel, std::forward<Arguments>(arguments)...);
}

}  // namespace

u64 scratch_floats(const ScalarCriticLossOp& op) {
  return static_cast<u64>(op.head.rows) * static_cast<u64>(op.head.groups);
}

u64 scratch_floats(const ScalarActorLossOp& op) { return static_cast<u64>(op.head.rows); }

cudaError_t launch_op(const CudaFrame& frame, const ScalarTargetOp& op) {
  const Reward reward = {op.source_rows,
                         op.reward_column,
                         op.done_column,
                         op.truncated_column,
                         op.gamma,
                         frame.floats(op.log_probability),
                         frame.floats(op.log_alpha)};
  return with_head(frame, op.head, {}, [&](const auto& head, auto vector) {
    using Stored = std::remove_pointer_t<decltype(head.hidden_gradient)>;
    return launch_for_rows(frame, op.head, scalar_targets<decltype(vector)::value, Stored>,
                           frame.arguments, head, reward, frame.floats(op.target));
  });
}

cudaError_t launch_op(const CudaFrame& frame, const ScalarCriticLossOp& op) {
  const float* target = frame.floats(op.target);
  const cudaError_t code =
      with_head(frame, op.head, op.gradient, [&](const auto& head, auto vector) {
        using Stored = std::remove_pointer_t<decltype(head.hidden_gradient)>;
        return launch_for_rows(frame, op.head,
                               scalar_critic_gradients<decltype(vector)::value, Stored>, head,
                               target, frame.at<Stored>(op.values_gradient), frame.scratch);
      });
  if (code != cudaSuccess) return code;
  const CriticScalars scalars = {frame.floats(op.loss), frame.floats(op.value_mean),
                                 frame.floats(op.value_max), frame.floats(op.value_min)};
  return launch_kernel(frame.stream, 1, kLossThreads, 0, scalar_critic_loss, op.head.rows,
                       op.head.groups, frame.scratch, target, scalars);
}

cudaError_t launch_op(const CudaFrame& frame, const ScalarActorLossOp& op) {
  const cudaError_t code =
      with_head(frame, op.head, op.gradient, [&](const auto& head, auto vector) {
        using Stored = std::remove_pointer_t<decltype(head.hidden_gradient)>;
        return launch_for_rows(frame, op.head,
                               scalar_actor_gradients<decltype(vector)::value, Stored>, head,
                               frame.scratch);
      });
  if (code != cudaSuccess) return code;
  return launch_kernel(frame.stream, 1, kLossThreads, 0, scalar_actor_loss, op.head.rows,
                       frame.scratch, frame.floats(op.log_probability), frame.floats(op.log_alpha),
                       frame.floats(op.loss), frame.floats(op.entropy));
}

}  // namespace millrace

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
  __device__ const Stored* hidden_of(int r, int g) const { return hidden + line(r, g) * width; }
  __device__ const float* weight_of(int g) const { return weight + g * weight_distance; }
};

// The values of two groups, to all lanes: what one reads is on its way while the other's is added
// up. Where there is no second group both are the first.
template <int kVector, class Stored>
__device__ void values_of(const Head<Stored>& head, int r, int first, float (&values)[2]) {
  using Columns = Packed<Stored, kVector>;
  using Weights = Packed<float, kVector>;
  const int groups[2] = {first, min(first + 1, head.groups - 1)};
  const float bias[2] = {head.bias[groups[0] * head.bias_distance],
                         head.bias[groups[1] * head.bias_distance]};
  values[0] = values[1] = 0.0f;
  for (int i = WarpTeam().lane() * kVector; i < head.width; i += kWarp * kVector) {
    Columns hidden[2];
    Weights weight[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      hidden[k] = *reinterpret_cast<const Columns*>(head.hidden_of(r, groups[k]) + i);
      weight[k] = *reinterpret_cast<const Weights*>(head.weight_of(groups[k]) + i);
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) {
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        values[k] += to_float(hidden[k].values[j]) * weight[k].values[j];
      }
    }
  }
#pragma unroll
  for (int k = 0; k < 2; ++k) values[k] = warp_sum(values[k]) + bias[k];
}

template <int kVector, class Stored>
__device__ LeastValue least_of(const Head<Stored>& head, int r) {
  LeastValue least{};
  for (int first = 0; first < head.groups; first += 2) {
    float values[2];
    values_of<kVector>(head, r, first, values);
    least.see(values[0], first);
    if (first + 1 < head.groups) least.see(values[1], first + 1);
  }
  return least;
}

template <int kVector, class Stored>
__device__ void pass_back(const Head<Stored>& head, int r, int g, float value_gradient) {
  const Stored* const hidden = head.hidden_of(r, g);
  const float* const weight = head.weight_of(g);
  Stored* const gradient = head.hidden_gradient + head.line(r, g) * head.width;
  for (int i = WarpTeam().lane() * kVector; i < head.width; i += kWarp * kVector) {
    const auto kept = *reinterpret_cast<const Packed<Stored, kVector>*>(hidden + i);
    const auto factors = *reinterpret_cast<const Packed<float, kVector>*>(weight + i);
    float values[kVector];
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      const bool is_cut = head.is_relu && !(to_float(kept.values[j]) > 0.0f);
      values[j] = is_cut ? 0.0f : value_gradient * factors.values[j];
    }
    *reinterpret_cast<Packed<Stored, kVector>*>(gradient + i) = packed<Stored, kVector>(values);
  }
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
  const float* row =
      arguments->rows + static_cast<u64>(r % reward.source_rows) * arguments->row_stride;
  const float gained = row[reward.reward_column] * arguments->reward_scale;
  const float done = row[reward.done_column], truncated = row[reward.truncated_column];
  const float entropy_part = mr_exp(*reward.log_alpha) * reward.log_probability[r];
  const LeastValue least = least_of<kVector>(next, r);
  if (!WarpTeam().leads()) return;
  target[r] = soft_target(gained, done, truncated, reward.gamma, least.value - entropy_part);
}

// Leaves the values, [row][group].
template <int kVector, class Stored>
__global__ void __launch_bounds__(kRowThreads)
    scalar_critic_gradients(const Head<Stored> head, const float* target, Stored* values_gradient,
                            float* values) {
  wait_for_kernels_before();
  const int r = own_row();
  if (r >= head.rows) return;
  const float share = 2.0f / static_cast<float>(head.rows), wanted = target[r];
  for (int first = 0; first < head.groups; first += 2) {
    float found[2];
    values_of<kVector>(head, r, first, found);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int g = first + k;
      if (g >= head.groups) continue;
      const float gradient = share * (found[k] - wanted);
      pass_back<kVector>(head, r, g, gradient);
      if (!WarpTeam().leads()) continue;
      values[head.line(r, g)] = found[k];
      values_gradient[head.line(r, g) * head.bias_distance] = static_cast<Stored>(gradient);
    }
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

cudaError_t launch_op(const CudaFrame& frame, const ScalarCriticGradientOp& op) {
  return with_head(frame, op.head, op.gradient, [&](const auto& head, auto vector) {
    using Stored = std::remove_pointer_t<decltype(head.hidden_gradient)>;
    return launch_for_rows(frame, op.head, scalar_critic_gradients<decltype(vector)::value, Stored>,
                           head, frame.floats(op.target), frame.at<Stored>(op.values_gradient),
                           frame.floats(op.values));
  });
}

cudaError_t launch_op(const CudaFrame& frame, const ScalarCriticLossOp& op) {
  const CriticScalars scalars = {frame.floats(op.loss), frame.floats(op.value_mean),
                                 frame.floats(op.value_max), frame.floats(op.value_min)};
  return launch_kernel(frame.stream, 1, kLossThreads, 0, scalar_critic_loss, op.rows, op.groups,
                       frame.floats(op.values), frame.floats(op.target), scalars);
}

cudaError_t launch_op(const CudaFrame& frame, const ScalarActorGradientOp& op) {
  return with_head(frame, op.head, op.gradient, [&](const auto& head, auto vector) {
    using Stored = std::remove_pointer_t<decltype(head.hidden_gradient)>;
    return launch_for_rows(frame, op.head, scalar_actor_gradients<decltype(vector)::value, Stored>,
                           head, frame.floats(op.least_values));
  });
}

cudaError_t launch_op(const CudaFrame& frame, const ScalarActorLossOp& op) {
  return launch_kernel(frame.stream, 1, kLossThreads, 0, scalar_actor_loss, op.rows,
                       frame.floats(op.least_values), frame.floats(op.log_probability),
                       frame.floats(op.log_alpha), frame.floats(op.loss), frame.floats(op.entropy));
}

}  // namespace millrace

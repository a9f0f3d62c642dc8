// Categorical critics: a warp, or half of one where there are many rows, computes one row of one
// group, softmax, loss and gradient in one pass over the atoms, which its lanes keep in
// registers (more than a few hundred go to local memory).
#include <type_traits>

#include "c51_body.h"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "reduction_cuda.cuh"
#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

template <class Stored>
struct Values {
  int rows, groups;
  Support support;
  int stride;
  const float *logits, *bias;
  Stored* out;  // the target distribution, or the gradient of the logits
};

struct Projection {
  int source_rows, reward_column, done_column, truncated_column;
  float gamma;
  const float *log_probability, *log_alpha;
};

// What a row's target is made of, the same for all groups.
struct Move {
  float reward, discount;
};

__device__ Move move_of(const Arguments& arguments, const Projection& projection, float alpha,
                        int r) {
  const float* row =
      arguments.rows + static_cast<u64>(r % projection.source_rows) * arguments.row_stride;
  const float reward = row[projection.reward_column] * arguments.reward_scale;
  float bootstrap = 1.0f - row[projection.done_column] + row[projection.truncated_column];
  bootstrap = bootstrap < 0.0f ? 0.0f : bootstrap;
  bootstrap = bootstrap > 1.0f ? 1.0f : bootstrap;
  const float discount = projection.gamma * bootstrap;
  // reward - reward is NaN for an infinite reward, which the clamp to the support would hide.
  return {reward - discount * alpha * projection.log_probability[r] + (reward - reward), discount};
}

// Rows go round robin to all teams of a launch of kParts blocks.
template <class Team>
constexpr int kTeams = kPartThreads / Team::kLanes;
template <class Team>
constexpr int kRowsApart = kParts* kTeams<Team>;
template <class Team>
__device__ int first_row() {
  return static_cast<int>(blockIdx.x) * kTeams<Team> + static_cast<int>(threadIdx.x) / Team::kLanes;
}

// Of a multiprocessor: with few atoms per lane all kParts run at once on the largest cards.
template <int kOwn>
constexpr int kBlocksAtOnce = kOwn <= 7 ? 8 : 1;

// This team's share of the block's dynamic shared memory.
template <class Team>
__device__ u32* team_memory(int words) {
  extern __shared__ u32 shared[];
  return shared + static_cast<size_t>(threadIdx.x / Team::kLanes) * words;
}

template <class Team, int kOwn>
__global__ void __launch_bounds__(kPartThreads, kBlocksAtOnce<kOwn>)
    project_targets(const Arguments* arguments, const Values<float> values,
                    const Projection projection) {
  wait_for_kernels_before();
  const Team team;
  const int atoms = values.support.atoms;
  u32* room = team_memory<Team>(projection_room(atoms));
  const float alpha = mr_exp(*projection.log_alpha);
  for (int at = first_row<Team>(); at < values.rows * values.groups; at += kRowsApart<Team>) {
    const int r = at / values.groups, group = at % values.groups;
    const Move move = move_of(*arguments, projection, alpha, r);
    const u64 first = static_cast<u64>(at) * values.stride;
    const Softmax<kOwn> softmax =
        softmax_row<kOwn>(team, values.logits + first, values.bias + group * values.stride, atoms);
    project_row(team, values.support, softmax.probabilities, move.reward, move.discount, room,
                values.out + first);
  }
}

template <int kOwn>
struct SmallestValue {
  int group;
  float value;
  Softmax<kOwn> softmax;  // of that group
};

// Of a row's groups the one with the smallest expected value, the first of several.
template <int kOwn, class Team, class Stored>
__device__ SmallestValue<kOwn> smallest_of(const Team& team, const Values<Stored>& values, int r) {
  const int atoms = values.support.atoms;
  SmallestValue<kOwn> smallest;
  for (int group = 0; group < values.groups; ++group) {
    const u64 first = (static_cast<u64>(r) * values.groups + group) * values.stride;
    const Softmax<kOwn> softmax =
        softmax_row<kOwn>(team, values.logits + first, values.bias + group * values.stride, atoms);
    const float value = expected_value_row(team, values.support, softmax.probabilities);
    if (group == 0 || value < smallest.value) smallest = {group, value, softmax};
  }
  return smallest;
}

// A team computes all groups of a row.
template <class Team, int kOwn>
__global__ void __launch_bounds__(kPartThreads, kBlocksAtOnce<kOwn>)
    project_smallest(const Arguments* arguments, const Values<float> values,
                     const Projection projection) {
  wait_for_kernels_before();
  const Team team;
  const int atoms = values.support.atoms;
  u32* room = team_memory<Team>(projection_room(atoms));
  const float alpha = mr_exp(*projection.log_alpha);
  for (int r = first_row<Team>(); r < values.rows; r += kRowsApart<Team>) {
    const Move move = move_of(*arguments, projection, alpha, r);
    const SmallestValue<kOwn> smallest = smallest_of<kOwn>(team, values, r);
    float* const out = values.out + static_cast<u64>(r) * values.groups * values.stride;
    project_row(team, values.support, smallest.softmax.probabilities, move.reward, move.discount,
                room, out);
    team.sync();
    for (int i = team.lane(); i < atoms; i += Team::kLanes) {
      for (int group = 1; group < values.groups; ++group) out[group * values.stride + i] = out[i];
    }
  }
}

struct CriticScalars {
  float *loss, *value_mean, *value_max, *value_min;
};

__global__ void __launch_bounds__(kParts)
    finish_critic_loss(const float* parts, float share, float value_share,
                       const CriticScalars scalars) {
  wait_for_kernels_before();
  __shared__ float room[4][kWarp];
  const float* const own = parts + threadIdx.x;
  float of_warps[] = {warp_sum(own[0]), warp_sum(own[kParts]), warp_maximum(own[2 * kParts]),
                      warp_maximum(own[3 * kParts])};
  gather_from_warps(of_warps, room);
  if (threadIdx.x >= kWarp) return;
  const float loss = warp_sum(of_warps[0]), values = warp_sum(of_warps[1]);
  const float top = warp_maximum(of_warps[2]), bottom = warp_maximum(of_warps[3]);
  if (threadIdx.x != 0) return;
  *scalars.loss = loss * share;
  *scalars.value_mean = values * value_share;
  *scalars.value_max = top;
  *scalars.value_min = -bottom;
}

// parts: kParts each of loss, value sum, value maximum, negated value minimum.
template <class Team, int kOwn, class Stored>
__global__ void __launch_bounds__(kPartThreads, kBlocksAtOnce<kOwn>)
    critic_losses(const Values<Stored> values, const float* target, float share, float* parts) {
  wait_for_kernels_before();
  __shared__ float room[kPartWarps];
  __shared__ float extremes[2][kTeams<Team>];
  const Team team;
  const int atoms = values.support.atoms;
  float loss = 0.0f, value_sum = 0.0f;
  float top = values.support.v_min, bottom = -values.support.v_max;
  for (int at = first_row<Team>(); at < values.rows * values.groups; at += kRowsApart<Team>) {
    const float* bias = values.bias + at % values.groups * values.stride;
    const u64 first = static_cast<u64>(at) * values.stride;
    const Softmax<kOwn> softmax = softmax_row<kOwn>(team, values.logits + first, bias, atoms);
    loss += cross_entropy_row(team, softmax, target + first, share, values.out + first, atoms);
    const float value = expected_value_row(team, values.support, softmax.probabilities);
    value_sum += value;
    top = mr_max(value, top);
    bottom = mr_max(-value, bottom);
  }
  if (team.leads()) {
    extremes[0][threadIdx.x / Team::kLanes] = top;
    extremes[1][threadIdx.x / Team::kLanes] = bottom;
  }
  const float block_loss = block_sum(team.leads() ? loss : 0.0f, room);
  __syncthreads();
  const float block_values = block_sum(team.leads() ? value_sum : 0.0f, room);
  if (threadIdx.x == 0) {
    for (int i = 1; i < kTeams<Team>; ++i) {
      top = mr_max(extremes[0][i], top);
      bottom = mr_max(extremes[1][i], bottom);
    }
    parts[blockIdx.x] = block_loss;
    parts[kParts + blockIdx.x] = block_values;
    parts[2 * kParts + blockIdx.x] = top;
    parts[3 * kParts + blockIdx.x] = bottom;
  }
}

struct ActorScalars {
  const float* log_alpha;
  float *loss, *entropy;
};

__global__ void __launch_bounds__(kParts)
    finish_actor_loss(const float* parts, float share, float value_share,
                      const ActorScalars scalars) {
  wait_for_kernels_before();
  __shared__ float room[2][kWarp];
  float of_warps[] = {warp_sum(parts[threadIdx.x]), warp_sum(parts[kParts + threadIdx.x])};
  gather_from_warps(of_warps, room);
  if (threadIdx.x >= kWarp) return;
  const float values = warp_sum(of_warps[0]), logs = warp_sum(of_warps[1]);
  if (threadIdx.x != 0) return;
  *scalars.loss = mr_exp(*scalars.log_alpha) * logs * share - values * value_share;
  *scalars.entropy = -logs * share;
}

// parts: kParts each of value sum, sum of log pi.
template <class Team, int kOwn, class Stored>
__global__ void __launch_bounds__(kPartThreads, kBlocksAtOnce<kOwn>)
    actor_losses(const Values<Stored> values, const float* log_probability, float* parts) {
  wait_for_kernels_before();
  __shared__ float room[kPartWarps];
  const Team team;
  const int atoms = values.support.atoms;
  const float share = 1.0f / static_cast<float>(values.rows) / static_cast<float>(values.groups);
  float value_sum = 0.0f, log_probability_sum = 0.0f;
  for (int at = first_row<Team>(); at < values.rows * values.groups; at += kRowsApart<Team>) {
    const int r = at / values.groups, group = at % values.groups;
    const u64 first = static_cast<u64>(at) * values.stride;
    const Softmax<kOwn> softmax =
        softmax_row<kOwn>(team, values.logits + first, values.bias + group * values.stride, atoms);
    const float value = expected_value_row(team, values.support, softmax.probabilities);
    value_gradient_row(team, values.support, softmax.probabilities, value, share,
                       values.out + first);
    value_sum += value;
    if (group == 0) log_probability_sum += log_probability[r];
  }
  const float block_values = block_sum(team.leads() ? value_sum : 0.0f, room);
  __syncthreads();
  const float block_logs = block_sum(team.leads() ? log_probability_sum : 0.0f, room);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = block_values;
    parts[kParts + blockIdx.x] = block_logs;
  }
}

// The same of the smallest value alone; a team computes all groups of a row.
template <class Team, int kOwn, class Stored>
__global__ void __launch_bounds__(kPartThreads, kBlocksAtOnce<kOwn>)
    smallest_actor_losses(const Values<Stored> values, const float* log_probability, float* parts) {
  wait_for_kernels_before();
  __shared__ float room[kPartWarps];
  const Team team;
  const int atoms = values.support.atoms;
  const float share = 1.0f / static_cast<float>(values.rows);
  float value_sum = 0.0f, log_probability_sum = 0.0f;
  for (int r = first_row<Team>(); r < values.rows; r += kRowsApart<Team>) {
    const SmallestValue<kOwn> smallest = smallest_of<kOwn>(team, values, r);
    for (int group = 0; group < values.groups; ++group) {
      Stored* const out =
          values.out + (static_cast<u64>(r) * values.groups + group) * values.stride;
      if (group == smallest.group) {
        value_gradient_row(team, values.support, smallest.softmax.probabilities, smallest.value,
                           share, out);
      } else {
        for (int i = team.lane(); i < atoms; i += Team::kLanes) out[i] = Stored(0.0f);
      }
    }
    value_sum += smallest.value;
    log_probability_sum += log_probability[r];
  }
  const float block_values = block_sum(team.leads() ? value_sum : 0.0f, room);
  __syncthreads();
  const float block_logs = block_sum(team.leads() ? log_probability_sum : 0.0f, room);
  if (threadIdx.x != 0) return;
  parts[blockIdx.x] = block_values;
  parts[kParts + blockIdx.x] = block_logs;
}

template <class AnyOp, class Stored>
Values<Stored> values_of(const CudaFrame& frame, const AnyOp& op, Stored* out) {
  return {op.rows,
          op.groups,
          op.support,
          op.value_stride,
          frame.floats(op.logits),
          frame.floats(op.bias),
          out};
}

template <class RowTeam, int kAtomsOfALane>
struct Teamwork {
  using Team = RowTeam;
  static constexpr int kOwn = kAtomsOfALane;
};

// Calls launch with the smallest of our teams and numbers of atoms per lane that holds the support.
// Half a warp takes a row where whole ones would take several: two at once cost less than one after
// the other, but a single one takes longer. Both halves work together, so rows must come out even.
template <class Launch>
cudaError_t launch_for(const Support& support, int rows, const Launch& launch) {
  using HalfWarp = TeamOf<kWarp / 2>;
  const bool are_many = rows >= 2 * kRowsApart<WarpTeam>;
  if (support.atoms <= 7 * HalfWarp::kLanes && are_many && rows % 2 == 0) {
    return launch(Teamwork<HalfWarp, 7>());
  }
  if (support.atoms <= 4 * kWarp) return launch(Teamwork<WarpTeam, 4>());
  if (support.atoms <= 16 * kWarp) return launch(Teamwork<WarpTeam, 16>());
  if (support.atoms <= 128 * kWarp) return launch(Teamwork<WarpTeam, 128>());
  return cudaErrorInvalidValue;
}

}  // namespace

u64 scratch_floats(const CriticLossOp&) { return 4 * kParts; }

u64 scratch_floats(const ActorLossOp&) { return 2 * kParts; }

cudaError_t launch_op(const CudaFrame& frame, const ProjectTargetOp& op) {
  const Projection projection = {op.source_rows,
                                 op.reward_column,
                                 op.done_column,
                                 op.truncated_column,
                                 op.gamma,
                                 frame.floats(op.log_probability),
                                 frame.floats(op.log_alpha)};
  const int rows = op.takes_smallest ? op.rows : op.rows * op.groups;
  return launch_for(op.support, rows, [&](auto teamwork) {
    using Team = typename decltype(teamwork)::Team;
    constexpr int kOwn = decltype(teamwork)::kOwn;
    const size_t shared_bytes =
        static_cast<size_t>(kTeams<Team> * projection_room(op.support.atoms)) * sizeof(u32);
    return launch_kernel(
        frame.stream, kParts, kPartThreads, shared_bytes,
        op.takes_smallest ? project_smallest<Team, kOwn> : project_targets<Team, kOwn>,
        frame.arguments, values_of(frame, op, frame.floats(op.target)), projection);
  });
}

cudaError_t launch_op(const CudaFrame& frame, const CriticLossOp& op) {
  const float share = 1.0f / static_cast<float>(op.rows);
  const float loss_share = op.is_mean_over_groups ? share / static_cast<float>(op.groups) : share;
  const cudaError_t code = launch_for(op.support, op.rows * op.groups, [&](auto teamwork) {
    return with_stored(frame, op.logits_gradient, [&](auto* gradient) {
      using Stored = std::remove_pointer_t<decltype(gradient)>;
      using Team = typename decltype(teamwork)::Team;
      return launch_kernel(frame.stream, kParts, kPartThreads, 0,
                           critic_losses<Team, decltype(teamwork)::kOwn, Stored>,
                           values_of(frame, op, gradient), frame.floats(op.target), loss_share,
                           frame.scratch);
    });
  });
  if (code != cudaSuccess) return code;
  const CriticScalars scalars = {frame.floats(op.loss), frame.floats(op.value_mean),
                                 frame.floats(op.value_max), frame.floats(op.value_min)};
  return launch_kernel(frame.stream, 1, kParts, 0, finish_critic_loss, frame.scratch, loss_share,
                       share / static_cast<float>(op.groups), scalars);
}

cudaError_t launch_op(const CudaFrame& frame, const ActorLossOp& op) {
  const int rows = op.takes_smallest ? op.rows : op.rows * op.groups;
  const cudaError_t code = launch_for(op.support, rows, [&](auto teamwork) {
    return with_stored(frame, op.logits_gradient, [&](auto* gradient) {
      using Stored = std::remove_pointer_t<decltype(gradient)>;
      using Team = typename decltype(teamwork)::Team;
      constexpr int kOwn = decltype(teamwork)::kOwn;
      return launch_kernel(frame.stream, kParts, kPartThreads, 0,
                           op.takes_smallest ? smallest_actor_losses<Team, kOwn, Stored>
                                             : actor_losses<Team, kOwn, Stored>,
                           values_of(frame, op, gradient), frame.floats(op.log_probability),
                           frame.scratch);
    });
  });
  if (code != cudaSuccess) return code;
  const float share = 1.0f / static_cast<float>(op.rows);
  const ActorScalars scalars = {frame.floats(op.log_alpha), frame.floats(op.loss),
                                frame.floats(op.entropy)};
  return launch_kernel(frame.stream, 1, kParts, 0, finish_actor_loss, frame.scratch, share,
                       op.takes_smallest ? share : share / static_cast<float>(op.groups), scalars);
}

}  // namespace millrace

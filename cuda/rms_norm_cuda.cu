// Root-mean-square normalisation: a warp computes one row of one group in registers. The gain's
// gradient adds up in two steps of fixed order: each block over its rows, then the blocks.
#include <algorithm>

#include "chunk_sums_cuda.cuh"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "rms_norm_body.h"
#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kOwn = 8;         // columns of a lane
constexpr int kOwnOfWide = 32;  // of a row wider than kOwn * kWarp
constexpr int kWarps = 8;       // rows that a block computes at a time
constexpr int kThreads = kWarps * kWarp;
constexpr int kWantedBlocks = 264;  // two for each multiprocessor of large cards

template <class Stored>
struct Rms {
  int rows, groups, width, rows_of_a_block;
  const Stored *gradient, *input;
  const float* gain;
  float* inverse_rms;
  Stored* out;  // the output, or the input's gradient

  __device__ u64 row_of(int r) const { return static_cast<u64>(r) * groups + blockIdx.y; }
};

// Block (chunk of rows, group): calls visit(row, gain) for each of a warp's rows.
template <int kOwn, class Stored, class Visit>
__device__ void visit_rows(const Rms<Stored>& rms, const Visit& visit) {
  float gain[kOwn];
  read_own_columns(WarpTeam(), rms.gain + static_cast<u64>(blockIdx.y) * rms.width, rms.width,
                   gain);
  const int begin = static_cast<int>(blockIdx.x) * rms.rows_of_a_block;
  const int end = min(begin + rms.rows_of_a_block, rms.rows);
  for (int r = begin + static_cast<int>(threadIdx.x) / kWarp; r < end; r += kWarps) {
    visit(rms.row_of(r), gain);
  }
}

template <int kOwn, class Stored>
__global__ void __launch_bounds__(kThreads) rms_forward(const Rms<Stored> rms) {
  wait_for_kernels_before();
  visit_rows<kOwn>(rms, [&](u64 row, const float(&gain)[kOwn]) {
    const WarpTeam team;
    float x[kOwn];
    read_own_columns(team, rms.input + row * rms.width, rms.width, x);
    const float inverse = rms_norm_row(team, gain, x, rms.out + row * rms.width, rms.width);
    if (team.leads()) rms.inverse_rms[row] = inverse;
  });
}

// partial[chunk][group][column], or null.
template <int kOwn, class Stored>
__global__ void __launch_bounds__(kThreads) rms_backward(const Rms<Stored> rms, float* partial) {
  wait_for_kernels_before();
  __shared__ float room[kWarps][kOwn * kWarp];
  const WarpTeam team;
  float sums[kOwn] = {};
  visit_rows<kOwn>(rms, [&](u64 row, const float(&gain)[kOwn]) {
    float x[kOwn], gradient[kOwn];
    read_own_columns(team, rms.input + row * rms.width, rms.width, x);
    read_own_columns(team, rms.gradient + row * rms.width, rms.width, gradient);
    rms_norm_gradient_row(team, gain, x, gradient, rms.inverse_rms[row], rms.out + row * rms.width,
                          rms.width, sums);
  });
  if (partial == nullptr) return;
  each_own_column<kOwn>(
      team, rms.width, [&](int own, int column) { room[threadIdx.x / kWarp][column] = sums[own]; });
  __syncthreads();
  partial += (static_cast<u64>(blockIdx.x) * rms.groups + blockIdx.y) * rms.width;
  for (int column = static_cast<int>(threadIdx.x); column < rms.width; column += kThreads) {
    float sum = 0.0f;
    for (int warp = 0; warp < kWarps; ++warp) sum += room[warp][column];
    partial[column] = sum;
  }
}

struct Chunks {
  int count, rows_of_each;
};

Chunks chunks_of(int rows, int groups) {
  const int wanted = std::max(kWantedBlocks / groups, 1);
  const int rows_of_each = std::max((rows + wanted - 1) / wanted, kWarps);
  return {(rows + rows_of_each - 1) / rows_of_each, rows_of_each};
}

}  // namespace

u64 scratch_floats(const RmsNormBackwardOp& op) {
  if (!op.gain_gradient.used()) return 0;
  return static_cast<u64>(chunks_of(op.rows, op.groups).count) * op.groups * op.width;
}

cudaError_t launch_op(const CudaFrame& frame, const RmsNormForwardOp& op) {
  if (op.width > kOwnOfWide * kWarp) return cudaErrorInvalidValue;
  const Chunks chunks = chunks_of(op.rows, op.groups);
  const dim3 grid(static_cast<unsigned>(chunks.count), static_cast<unsigned>(op.groups));
  return with_stored(frame, op.output, [&](auto* output) {
    using Stored = std::remove_pointer_t<decltype(output)>;
    const Rms<Stored> rms = {op.rows,
                             op.groups,
                             op.width,
                             chunks.rows_of_each,
                             nullptr,
                             frame.at<Stored>(op.input),
                             frame.floats(op.gain),
                             frame.floats(op.inverse_rms),
                             output};
    return launch_kernel(
        frame.stream, grid, kThreads, 0,
        op.width <= kOwn * kWarp ? rms_forward<kOwn, Stored> : rms_forward<kOwnOfWide, Stored>,
        rms);
  });
}

cudaError_t launch_op(const CudaFrame& frame, const RmsNormBackwardOp& op) {
  if (op.width > kOwnOfWide * kWarp) return cudaErrorInvalidValue;
  const Chunks chunks = chunks_of(op.rows, op.groups);
  const bool has_sums = op.gain_gradient.used();
  const dim3 grid(static_cast<unsigned>(chunks.count), static_cast<unsigned>(op.groups));
  const cudaError_t code = with_stored(frame, op.gradient, [&](auto* gradient) {
    using Stored = std::remove_pointer_t<decltype(gradient)>;
    const Rms<Stored> rms = {op.rows,
                             op.groups,
                             op.width,
                             chunks.rows_of_each,
                             gradient,
                             frame.at<Stored>(op.input),
                             frame.floats(op.gain),
                             frame.floats(op.inverse_rms),
                             frame.at<Stored>(op.input_gradient)};
    return launch_kernel(
        frame.stream, grid, kThreads, 0,
        op.width <= kOwn * kWarp ? rms_backward<kOwn, Stored> : rms_backward<kOwnOfWide, Stored>,
        rms, has_sums ? frame.scratch : nullptr);
  });
  if (code != cudaSuccess || !has_sums) return code;
  const u64 width = static_cast<u64>(op.groups) * op.width;
  return launch_add_chunks(
      frame.stream, {frame.scratch, width, chunks.count, 1, {frame.floats(op.gain_gradient)}});
}

}  // namespace millrace

// Root-mean-square normalisation: a team computes one row of one group in registers, and the next
// one is on its way meanwhile. The gain's gradient adds up in three steps of fixed order: each team
// over its rows, the teams of a block, then the blocks.
#include <type_traits>

#include "chunk_sums_cuda.cuh"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "rms_norm_body.h"
#include "row_spread.cuh"
#include "stored.cuh"

namespace millrace {
namespace {

template <class Stored>
struct Rms {
  int rows, groups, width, rows_of_a_chunk;
  const Stored *gradient, *input;
  const float* gain;
  float* inverse_rms;
  Stored* out;  // the output, or the input's gradient

  // Of row r of the block's group.
  __device__ u64 row_of(int r) const { return static_cast<u64>(r) * groups + blockIdx.y; }
  __device__ u64 first_of(int r) const { return row_of(r) * width; }
  template <class Row>
  __device__ void read_gain(float (&own)[Row::kOwn]) const {
    read_own_columns<Row::kOwn, Row::kVector>(
        typename Row::Team(), gain + static_cast<u64>(blockIdx.y) * width, width, own);
  }
};

// Block (chunk, group).
template <class Row, class Stored>
__global__ void __launch_bounds__(kRowThreads) rms_forward(const Rms<Stored> rms) {
  wait_for_kernels_before();
  const typename Row::Team team;
  const int width = Row::width(rms.width);
  const TeamRows<Row> rows(rms.rows, rms.rows_of_a_chunk);
  typename Row::template Own<Stored> next;
  const auto read = [&](int first) { next.read(rms.input + rms.first_of(rows.row(first)), width); };
  if (rows.begin < rows.end) read(rows.begin);
  float gain[Row::kOwn];
  rms.template read_gain<Row>(gain);
  for (int first = rows.begin; first < rows.end; first += Row::kTeams) {
    float x[Row::kOwn];
    next.unpack(x);
    if (first + Row::kTeams < rows.end) read(first + Row::kTeams);
    const float inverse = rms_norm_row<Row::kOwn, Row::kVector>(team, gain, x, width);
    if (!rows.has_row(first)) continue;
    const int r = rows.row(first);
    next.write(x, rms.out + rms.first_of(r), width);
    if (team.leads()) rms.inverse_rms[rms.row_of(r)] = inverse;
  }
}

// Block (chunk, group): partial[chunk][group][column], or null.
template <class Row, class Stored>
__global__ void __launch_bounds__(kRowThreads) rms_backward(const Rms<Stored> rms, float* partial) {
  wait_for_kernels_before();
  extern __shared__ float room[];
  const typename Row::Team team;
  const int width = Row::width(rms.width);
  const TeamRows<Row> rows(rms.rows, rms.rows_of_a_chunk);
  typename Row::template Own<Stored> next_x, next_gradient;
  float next_inverse = 0.0f;
  const auto read = [&](int first) {
    const int r = rows.row(first);
    next_x.read(rms.input + rms.first_of(r), width);
    next_gradient.read(rms.gradient + rms.first_of(r), width);
    next_inverse = rms.inverse_rms[rms.row_of(r)];
  };
  if (rows.begin < rows.end) read(rows.begin);
  float gain[Row::kOwn], sums[Row::kOwn] = {};
  rms.template read_gain<Row>(gain);
  for (int first = rows.begin; first < rows.end; first += Row::kTeams) {
    float x[Row::kOwn], gradient[Row::kOwn];
    next_x.unpack(x);
    next_gradient.unpack(gradient);
    const float inverse = next_inverse;
    const bool has_row = rows.has_row(first);
    if (!has_row) forget(gradient);
    if (first + Row::kTeams < rows.end) read(first + Row::kTeams);
    rms_norm_gradient_row<Row::kOwn, Row::kVector>(team, gain, x, gradient, inverse, width, sums);
    if (has_row) next_x.write(gradient, rms.out + rms.first_of(rows.row(first)), width);
  }
  if (partial == nullptr) return;
  add_teams<Row>(sums, 1.0f, room, width,
                 partial + (static_cast<u64>(blockIdx.x) * rms.groups + blockIdx.y) * width);
}

Chunks chunks_of(const RmsNormForwardOp& op) {
  return row_chunks(op.rows, op.groups * kRowWarps, kForwardWarps);
}

Chunks chunks_of(const RmsNormBackwardOp& op) {
  return row_chunks(op.rows, op.groups * kRowWarps, kBackwardWarps);
}

}  // namespace

u64 scratch_floats(const RmsNormBackwardOp& op) {
  if (!op.gain_gradient.used()) return 0;
  return static_cast<u64>(chunks_of(op).count) * op.groups * op.width;
}

cudaError_t launch_op(const CudaFrame& frame, const RmsNormForwardOp& op) {
  const Chunks chunks = chunks_of(op);
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
    return with_spread(op.width, [&](auto row) {
      return launch_kernel(frame.stream, grid, kRowThreads, 0, rms_forward<decltype(row), Stored>,
                           rms);
    });
  });
}

cudaError_t launch_op(const CudaFrame& frame, const RmsNormBackwardOp& op) {
  const Chunks chunks = chunks_of(op);
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
    return with_spread(op.width, [&](auto row) {
      using Row = decltype(row);
      return launch_kernel(frame.stream, grid, kRowThreads,
                           static_cast<size_t>(Row::kTeams * op.width) * sizeof(float),
                           rms_backward<Row, Stored>, rms, has_sums ? frame.scratch : nullptr);
    });
  });
  if (code != cudaSuccess || !has_sums) return code;
  const u64 width = static_cast<u64>(op.groups) * op.width;
  return launch_add_chunks(
      frame.stream, {frame.scratch, width, chunks.count, 1, {frame.floats(op.gain_gradient)}});
}

}  // namespace millrace

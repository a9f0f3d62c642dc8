// Dense layers beside their products: a block is the team of one row, and computes its share of one
// group's rows, parameters and sums of its columns in registers. Gradients of the parameters add up
// in two steps of fixed order: each block over its rows, then the blocks.
#include <algorithm>

#include "dense_layer_body.h"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kOwn = 8;             // columns of a thread
constexpr int kOwnOfWide = 32;      // of a row too wide for kLayerThreads of them
constexpr int kLayerThreads = 256;  // of a block at most
constexpr int kRowsOfABlock = 16;   // or more, where the blocks would be too many
constexpr int kMaxChunks = 512;     // blocks that share the rows of a group
constexpr int kSums = 3;            // gain, shift, bias
constexpr int kSumThreads = 256;
constexpr int kSumColumns = kWarp;  // of a block that adds chunks up
constexpr int kSumLanes = kSumThreads / kSumColumns;

struct Layer {
  int rows, groups, width, rows_of_a_chunk;
  float* values;  // forward: linear -> normalised; backward: the gradient
  const float* normalised;
  const float *bias, *gain, *shift;
  float* inverse_deviation;
  float* output;
};

// All threads of a block. Two rooms take turns, so that one wait per sum is enough.
class BlockTeam {
 public:
  static constexpr int kMaxWarps = kLayerThreads / kWarp;
  using Rooms = float[2][kMaxWarps];

  __device__ explicit BlockTeam(Rooms& rooms) : rooms_(rooms) {}
  __device__ int lane() const { return static_cast<int>(threadIdx.x); }
  __device__ int size() const { return static_cast<int>(blockDim.x); }
  __device__ bool leads() const { return lane() == 0; }
  __device__ float sum(float value) const {
    value = warp_sum(value);
    if (size() == kWarp) return value;
    float* room = rooms_[turn_];
    turn_ = 1 - turn_;
    if (lane() % kWarp == 0) room[lane() / kWarp] = value;
    __syncthreads();
    float all = room[0];
    for (int warp = 1; warp < size() / kWarp; ++warp) all += room[warp];
    return all;
  }

 private:
  Rooms& rooms_;
  mutable int turn_ = 0;
};

template <int kOwn>
__device__ LayerParameters<kOwn> own_parameters(const BlockTeam& team, const Layer& layer,
                                                u64 first) {
  LayerParameters<kOwn> parameters;
  each_own_column<kOwn>(team, layer.width, [&](int own, int column) {
    parameters.bias[own] = layer.bias == nullptr ? 0.0f : layer.bias[first + column];
    parameters.gain[own] = layer.gain[first + column];
    parameters.shift[own] = layer.shift[first + column];
  });
  return parameters;
}

// Block (chunk, group).
template <int kOwn>
__global__ void __launch_bounds__(kLayerThreads) layer_forward(const Layer layer) {
  __shared__ BlockTeam::Rooms rooms;
  const BlockTeam team(rooms);
  const u64 first = static_cast<u64>(blockIdx.y) * layer.width;
  const LayerParameters<kOwn> parameters = own_parameters<kOwn>(team, layer, first);
  const int begin = static_cast<int>(blockIdx.x) * layer.rows_of_a_chunk;
  const int end = min(begin + layer.rows_of_a_chunk, layer.rows);
  for (int r = begin; r < end; ++r) {
    const u64 row = static_cast<u64>(r) * layer.groups + blockIdx.y;
    const u64 at = row * layer.width;
    const float inverse_deviation =
        layer_forward_row(team, parameters, layer.values + at, layer.output + at, layer.width);
    if (team.leads()) layer.inverse_deviation[row] = inverse_deviation;
  }
}

// Block (chunk, group). With sums: partial[chunk][gain, shift, bias][group][column].
template <int kOwn, bool kHasSums>
__global__ void __launch_bounds__(kLayerThreads) layer_backward(const Layer layer, float* partial) {
  __shared__ BlockTeam::Rooms rooms;
  const BlockTeam team(rooms);
  const u64 first = static_cast<u64>(blockIdx.y) * layer.width;
  const LayerParameters<kOwn> parameters = own_parameters<kOwn>(team, layer, first);
  LayerSums<kOwn> sums;
  const int begin = static_cast<int>(blockIdx.x) * layer.rows_of_a_chunk;
  const int end = min(begin + layer.rows_of_a_chunk, layer.rows);
  for (int r = begin; r < end; ++r) {
    const u64 row = static_cast<u64>(r) * layer.groups + blockIdx.y;
    const u64 at = row * layer.width;
    layer_backward_row<kHasSums>(team, parameters, layer.values + at, layer.normalised + at,
                                 layer.inverse_deviation[row], layer.width, sums);
  }
  if (!kHasSums) return;
  const u64 all = static_cast<u64>(layer.groups) * layer.width;
  partial += blockIdx.x * kSums * all + first;
  each_own_column<kOwn>(team, layer.width, [&](int own, int column) {
    partial[column] = sums.gain[own];
    partial[all + column] = sums.shift[own];
    partial[2 * all + column] = sums.bias[own];
  });
}

// sums[which][i] = sum over chunks of partial[chunk][which][i]; `which` is the block's row. A warp
// reads kSumColumns columns of every kSumLanes-th chunk.
struct ChunkSums {
  const float* partial;
  u64 width;
  int chunks;
  float* sums[kSums];
};

__global__ void __launch_bounds__(kSumThreads) add_chunks(const __grid_constant__ ChunkSums op) {
  __shared__ float room[kSumLanes][kSumColumns];
  const int lane = static_cast<int>(threadIdx.x) / kSumColumns;
  const int column = static_cast<int>(threadIdx.x) % kSumColumns;
  const u64 i = static_cast<u64>(blockIdx.x) * kSumColumns + column;
  const u64 distance = gridDim.y * op.width;
  float sum = 0.0f;
  if (i < op.width) {
    const float* partial = op.partial + blockIdx.y * op.width + i;
#pragma unroll 8
    for (int chunk = lane; chunk < op.chunks; chunk += kSumLanes) sum += partial[chunk * distance];
  }
  room[lane][column] = sum;
  __syncthreads();
  if (lane != 0 || i >= op.width) return;
  for (int other = 1; other < kSumLanes; ++other) sum += room[other][column];
  op.sums[blockIdx.y][i] = sum;
}

// Block (columns, chunk): partial[chunk][column].
__global__ void __launch_bounds__(kSumThreads)
    sum_columns(const float* values, int rows, int rows_of_a_chunk, u64 width, float* partial) {
  const u64 i = static_cast<u64>(blockIdx.x) * kSumThreads + threadIdx.x;
  if (i >= width) return;
  const int begin = static_cast<int>(blockIdx.y) * rows_of_a_chunk;
  const int end = min(begin + rows_of_a_chunk, rows);
  float sum = 0.0f;
#pragma unroll 8
  for (int r = begin; r < end; ++r) sum += values[r * width + i];
  partial[blockIdx.y * width + i] = sum;
}

struct Chunks {
  int count, rows_of_each;
};

Chunks chunks_of(int rows) {
  const int rows_of_each = std::max(kRowsOfABlock, (rows + kMaxChunks - 1) / kMaxChunks);
  return {(rows + rows_of_each - 1) / rows_of_each, rows_of_each};
}

// As few threads as own a row; none if there is no such block.
unsigned threads_for(int width, int own) {
  const unsigned threads = blocks_for(static_cast<u64>(width), own * kWarp) * kWarp;
  return threads <= kLayerThreads ? threads : 0;
}

template <int kOwn>
cudaError_t launch_backward(const CudaFrame& frame, dim3 grid, unsigned threads, const Layer& layer,
                            bool has_sums) {
  return has_sums ? launch_kernel(frame.stream, grid, threads, 0, layer_backward<kOwn, true>, layer,
                                  frame.scratch)
                  : launch_kernel(frame.stream, grid, threads, 0, layer_backward<kOwn, false>,
                                  layer, nullptr);
}

cudaError_t launch_add_chunks(const CudaFrame& frame, int count, const ChunkSums& sums) {
  return launch_kernel(frame.stream,
                       dim3(blocks_for(sums.width, kSumColumns), static_cast<unsigned>(count)),
                       kSumThreads, 0, add_chunks, sums);
}

}  // namespace

u64 scratch_floats(const LayerBackwardOp& op) {
  if (!op.bias_gradient.used()) return 0;
  return static_cast<u64>(chunks_of(op.rows).count) * kSums * op.groups * op.width;
}

u64 scratch_floats(const ColumnSumOp& op) {
  return static_cast<u64>(chunks_of(op.rows).count) * op.width;
}

cudaError_t launch_op(const CudaFrame& frame, const LayerForwardOp& op) {
  const Chunks chunks = chunks_of(op.rows);
  const Layer layer = {op.rows,
                       op.groups,
                       op.width,
                       chunks.rows_of_each,
                       frame.floats(op.linear),
                       nullptr,
                       frame.floats(op.bias),
                       frame.floats(op.gain),
                       frame.floats(op.shift),
                       frame.floats(op.inverse_deviation),
                       frame.floats(op.output)};
  const dim3 grid(static_cast<unsigned>(chunks.count), static_cast<unsigned>(op.groups));
  if (const unsigned threads = threads_for(op.width, kOwn)) {
    return launch_kernel(frame.stream, grid, threads, 0, layer_forward<kOwn>, layer);
  }
  if (const unsigned threads = threads_for(op.width, kOwnOfWide)) {
    return launch_kernel(frame.stream, grid, threads, 0, layer_forward<kOwnOfWide>, layer);
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_op(const CudaFrame& frame, const LayerBackwardOp& op) {
  const Chunks chunks = chunks_of(op.rows);
  const Layer layer = {op.rows,
                       op.groups,
                       op.width,
                       chunks.rows_of_each,
                       frame.floats(op.gradient),
                       frame.floats(op.normalised),
                       nullptr,
                       frame.floats(op.gain),
                       frame.floats(op.shift),
                       frame.floats(op.inverse_deviation),
                       nullptr};
  const bool has_sums = op.bias_gradient.used();
  const dim3 grid(static_cast<unsigned>(chunks.count), static_cast<unsigned>(op.groups));
  cudaError_t code = cudaErrorInvalidValue;
  if (const unsigned threads = threads_for(op.width, kOwn)) {
    code = launch_backward<kOwn>(frame, grid, threads, layer, has_sums);
  } else if (const unsigned wide = threads_for(op.width, kOwnOfWide)) {
    code = launch_backward<kOwnOfWide>(frame, grid, wide, layer, has_sums);
  }
  if (code != cudaSuccess || !has_sums) return code;
  return launch_add_chunks(frame, kSums,
                           {frame.scratch,
                            static_cast<u64>(op.groups) * op.width,
                            chunks.count,
                            {frame.floats(op.gain_gradient), frame.floats(op.shift_gradient),
                             frame.floats(op.bias_gradient)}});
}

cudaError_t launch_op(const CudaFrame& frame, const ColumnSumOp& op) {
  const u64 width = static_cast<u64>(op.width);
  const Chunks chunks = chunks_of(op.rows);
  const cudaError_t code = launch_kernel(
      frame.stream, dim3(blocks_for(width, kSumThreads), static_cast<unsigned>(chunks.count)),
      kSumThreads, 0, sum_columns, frame.floats(op.values), op.rows, chunks.rows_of_each, width,
      frame.scratch);
  if (code != cudaSuccess) return code;
  return launch_add_chunks(
      frame, 1, {frame.scratch, width, chunks.count, {frame.floats(op.sums), nullptr, nullptr}});
}

}  // namespace millrace

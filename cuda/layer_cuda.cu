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
constexpr int kWantedWarps = 1536;  // of a launch: twelve for each multiprocessor of large cards
constexpr int kLeastRows = 8;       // of a block; fewer would not pay for its parameters
constexpr int kSums = 3;            // gain, shift, bias
constexpr int kSumThreads = 256;
constexpr int kAddThreads = 1024;
constexpr int kAddColumns = kWarp;  // of a block that adds chunks up
constexpr int kAddLanes = kAddThreads / kAddColumns;

struct Layer {
  int rows, groups, width, rows_of_a_chunk;
  float* values;  // forward: linear -> normalised; backward: the gradient
  const float* normalised;
  const float *bias, *gain, *shift;
  float* inverse_deviation;
  float* output;

  // Of row r of the block's group.
  __device__ u64 row_of(int r) const { return static_cast<u64>(r) * groups + blockIdx.y; }
  __device__ u64 first_of(int r) const { return row_of(r) * width; }
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

template <int kOwn>
struct LinearRow {
  float x[kOwn];
};

template <int kOwn>
__device__ void read_row(const BlockTeam& team, const Layer& layer, int r, LinearRow<kOwn>& row) {
  read_own_columns(team, layer.values + layer.first_of(r), layer.width, row.x);
}

template <int kOwn>
__device__ void read_row(const BlockTeam& team, const Layer& layer, int r,
                         LayerGradientRow<kOwn>& row) {
  const u64 first = layer.first_of(r);
  read_own_columns(team, layer.values + first, layer.width, row.gradient);
  read_own_columns(team, layer.normalised + first, layer.width, row.normalised);
  row.inverse_deviation = layer.inverse_deviation[layer.row_of(r)];
}

// Block (chunk, group). The next row is on its way while this one is computed.
template <int kOwn>
__global__ void __launch_bounds__(kLayerThreads) layer_forward(const Layer layer) {
  __shared__ BlockTeam::Rooms rooms;
  const BlockTeam team(rooms);
  const u64 first = static_cast<u64>(blockIdx.y) * layer.width;
  const LayerParameters<kOwn> parameters = own_parameters<kOwn>(team, layer, first);
  const int begin = static_cast<int>(blockIdx.x) * layer.rows_of_a_chunk;
  const int end = min(begin + layer.rows_of_a_chunk, layer.rows);
  LinearRow<kOwn> next;
  if (begin < end) read_row(team, layer, begin, next);
  for (int r = begin; r < end; ++r) {
    const LinearRow<kOwn> row = next;
    if (r + 1 < end) read_row(team, layer, r + 1, next);
    const u64 at = layer.first_of(r);
    const float inverse_deviation = layer_forward_row(team, parameters, row.x, layer.values + at,
                                                      layer.output + at, layer.width);
    if (team.leads()) layer.inverse_deviation[layer.row_of(r)] = inverse_deviation;
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
  LayerGradientRow<kOwn> next;
  if (begin < end) read_row(team, layer, begin, next);
  for (int r = begin; r < end; ++r) {
    const LayerGradientRow<kOwn> row = next;
    if (r + 1 < end) read_row(team, layer, r + 1, next);
    layer_backward_row<kHasSums>(team, parameters, row, layer.values + layer.first_of(r),
                                 layer.width, sums);
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
// reads kAddColumns columns of every kAddLanes-th chunk.
struct ChunkSums {
  const float* partial;
  u64 width;
  int chunks;
  float* sums[kSums];
};

__global__ void __launch_bounds__(kAddThreads) add_chunks(const __grid_constant__ ChunkSums op) {
  __shared__ float room[kAddLanes][kAddColumns];
  const int lane = static_cast<int>(threadIdx.x) / kAddColumns;
  const int column = static_cast<int>(threadIdx.x) % kAddColumns;
  const u64 i = static_cast<u64>(blockIdx.x) * kAddColumns + column;
  const u64 distance = gridDim.y * op.width;
  float sum = 0.0f;
  if (i < op.width) {
    const float* partial = op.partial + blockIdx.y * op.width + i;
#pragma unroll 8
    for (int chunk = lane; chunk < op.chunks; chunk += kAddLanes) sum += partial[chunk * distance];
  }
  room[lane][column] = sum;
  __syncthreads();
  if (lane != 0 || i >= op.width) return;
  for (int other = 1; other < kAddLanes; ++other) sum += room[other][column];
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

// For `warps` of them per chunk, over all groups.
Chunks chunks_of(int rows, int warps) {
  const int most = std::max(kWantedWarps / warps, 1);
  const int rows_of_each = std::max((rows + most - 1) / most, kLeastRows);
  return {(rows + rows_of_each - 1) / rows_of_each, rows_of_each};
}

// As few threads as own a row; none if there is no such block.
unsigned threads_for(int width, int own) {
  const unsigned threads = blocks_for(static_cast<u64>(width), own * kWarp) * kWarp;
  return threads <= kLayerThreads ? threads : 0;
}

template <class LayerOp>
Chunks chunks_of(const LayerOp& op) {
  const unsigned threads = std::max(threads_for(op.width, kOwn), threads_for(op.width, kOwnOfWide));
  return chunks_of(op.rows, op.groups * std::max(static_cast<int>(threads) / kWarp, 1));
}

Chunks chunks_of(const ColumnSumOp& op) {
  const unsigned blocks = blocks_for(static_cast<u64>(op.width), kSumThreads);
  return chunks_of(op.rows, static_cast<int>(blocks) * (kSumThreads / kWarp));
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
                       dim3(blocks_for(sums.width, kAddColumns), static_cast<unsigned>(count)),
                       kAddThreads, 0, add_chunks, sums);
}

}  // namespace

u64 scratch_floats(const LayerBackwardOp& op) {
  if (!op.bias_gradient.used()) return 0;
  return static_cast<u64>(chunks_of(op).count) * kSums * op.groups * op.width;
}

u64 scratch_floats(const ColumnSumOp& op) {
  return static_cast<u64>(chunks_of(op).count) * op.width;
}

cudaError_t launch_op(const CudaFrame& frame, const LayerForwardOp& op) {
  const Chunks chunks = chunks_of(op);
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
  const Chunks chunks = chunks_of(op);
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
  const Chunks chunks = chunks_of(op);
  const cudaError_t code = launch_kernel(
      frame.stream, dim3(blocks_for(width, kSumThreads), static_cast<unsigned>(chunks.count)),
      kSumThreads, 0, sum_columns, frame.floats(op.values), op.rows, chunks.rows_of_each, width,
      frame.scratch);
  if (code != cudaSuccess) return code;
  return launch_add_chunks(
      frame, 1, {frame.scratch, width, chunks.count, {frame.floats(op.sums), nullptr, nullptr}});
}

}  // namespace millrace

// Dense layers beside their products: a warp computes one row of one group. Gradients of the
// parameters add up in three steps of fixed order: each warp over its rows, in shared memory; the
// warps of a block; the blocks.
#include "dense_layer_body.h"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kForwardThreads = 128;
constexpr int kForwardRows = kForwardThreads / kWarp;
constexpr int kChunks = 128;      // blocks per group that share the rows of a sum
constexpr int kSumThreads = 128;  // columns of a block that adds chunks up
constexpr int kMaxWarps = 4;      // of a block of the backward pass
constexpr int kSums = 3;          // gain, shift, bias
constexpr size_t kSharedGoal = 48 << 10;

struct Layer {
  int rows, groups, width;
  float* values;  // forward: linear -> normalised; backward: the gradient
  const float* normalised;
  const float *bias, *gain, *shift;
  float* inverse_deviation;
  float* output;
};

__global__ void __launch_bounds__(kForwardThreads) layer_forward(const Layer layer) {
  const u64 row = static_cast<u64>(blockIdx.x) * kForwardRows + threadIdx.x / kWarp;
  if (row >= static_cast<u64>(layer.rows) * layer.groups) return;
  const u64 group = row % layer.groups * layer.width;
  const float inverse_deviation = layer_forward_row(
      WarpTeam(), layer.values + row * layer.width, layer.bias + group, layer.gain + group,
      layer.shift + group, layer.output + row * layer.width, layer.width);
  if (WarpTeam().leads()) layer.inverse_deviation[row] = inverse_deviation;
}

// Block (chunk, group). With sums: scratch[chunk][gain, shift, bias][group][column].
__global__ void layer_backward(const Layer layer, float* partial_sums) {
  extern __shared__ float shared[];
  const WarpTeam team;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const int width = layer.width;
  LayerSums sums = {nullptr, nullptr, nullptr};
  if (partial_sums != nullptr) {
    sums.gain = shared + static_cast<size_t>(warp) * kSums * width;
    sums.shift = sums.gain + width;
    sums.bias = sums.shift + width;
    for (int i = team.lane(); i < kSums * width; i += kWarp) sums.gain[i] = 0.0f;
    team.sync();
  }
  const int group = static_cast<int>(blockIdx.y);
  const u64 parameters = static_cast<u64>(group) * width;
  const int rows_of_a_chunk = (layer.rows + kChunks - 1) / kChunks;
  const int begin = static_cast<int>(blockIdx.x) * rows_of_a_chunk;
  const int end = min(begin + rows_of_a_chunk, layer.rows);
  for (int r = begin + warp; r < end; r += warps) {
    const u64 row = static_cast<u64>(r) * layer.groups + group;
    layer_backward_row(team, layer.values + row * width, layer.normalised + row * width,
                       layer.gain + parameters, layer.shift + parameters,
                       layer.inverse_deviation[row], width, sums);
  }
  if (partial_sums == nullptr) return;
  __syncthreads();
  const u64 all = static_cast<u64>(layer.groups) * width;
  for (int i = static_cast<int>(threadIdx.x); i < kSums * width;
       i += static_cast<int>(blockDim.x)) {
    float sum = 0.0f;
    for (int w = 0; w < warps; ++w) sum += shared[static_cast<size_t>(w) * kSums * width + i];
    const u64 which = i / width;
    partial_sums[(blockIdx.x * kSums + which) * all + parameters + i % width] = sum;
  }
}

// sums[which][i] = sum over chunks of partial[chunk][which][i]; `which` is the block's row.
struct ChunkSums {
  const float* partial;
  u64 width;
  float* sums[kSums];
};

__global__ void __launch_bounds__(kSumThreads) add_chunks(const ChunkSums chunks) {
  const u64 i = static_cast<u64>(blockIdx.x) * kSumThreads + threadIdx.x;
  if (i >= chunks.width) return;
  const u64 which = blockIdx.y;
  const u64 distance = gridDim.y * chunks.width;
  const float* partial = chunks.partial + which * chunks.width + i;
  float sum = 0.0f;
  for (int chunk = 0; chunk < kChunks; ++chunk) sum += partial[chunk * distance];
  chunks.sums[which][i] = sum;
}

// Block (columns, chunk): partial[chunk][column].
__global__ void __launch_bounds__(kSumThreads)
    sum_columns(const float* values, int rows, u64 width, float* partial) {
  const u64 i = static_cast<u64>(blockIdx.x) * kSumThreads + threadIdx.x;
  if (i >= width) return;
  const int rows_of_a_chunk = (rows + kChunks - 1) / kChunks;
  const int begin = static_cast<int>(blockIdx.y) * rows_of_a_chunk;
  const int end = min(begin + rows_of_a_chunk, rows);
  float sum = 0.0f;
  for (int r = begin; r < end; ++r) sum += values[r * width + i];
  partial[blockIdx.y * width + i] = sum;
}

}  // namespace

u64 scratch_floats(const LayerBackwardOp& op) {
  if (!op.bias_gradient.used()) return 0;
  return static_cast<u64>(kChunks) * kSums * op.groups * op.width;
}

u64 scratch_floats(const ColumnSumOp& op) { return static_cast<u64>(kChunks) * op.width; }

cudaError_t launch_op(const CudaFrame& frame, const LayerForwardOp& op) {
  const Layer layer = {op.rows,
                       op.groups,
                       op.width,
                       frame.floats(op.linear),
                       nullptr,
                       frame.floats(op.bias),
                       frame.floats(op.gain),
                       frame.floats(op.shift),
                       frame.floats(op.inverse_deviation),
                       frame.floats(op.output)};
  const u64 rows = static_cast<u64>(op.rows) * op.groups;
  return launch_kernel(frame.stream, blocks_for(rows, kForwardRows), kForwardThreads, 0,
                       layer_forward, layer);
}

cudaError_t launch_op(const CudaFrame& frame, const LayerBackwardOp& op) {
  const Layer layer = {op.rows,
                       op.groups,
                       op.width,
                       frame.floats(op.gradient),
                       frame.floats(op.normalised),
                       nullptr,
                       frame.floats(op.gain),
                       frame.floats(op.shift),
                       frame.floats(op.inverse_deviation),
                       nullptr};
  const bool has_sums = op.bias_gradient.used();
  const size_t bytes_of_a_warp = has_sums ? kSums * op.width * sizeof(float) : 0;
  int warps = kMaxWarps;
  while (warps > 1 && warps * bytes_of_a_warp > kSharedGoal) warps /= 2;
  const dim3 grid(kChunks, static_cast<unsigned>(op.groups));
  const cudaError_t code = launch_kernel(frame.stream, grid, static_cast<unsigned>(warps * kWarp),
                                         static_cast<size_t>(warps) * bytes_of_a_warp,
                                         layer_backward, layer, has_sums ? frame.scratch : nullptr);
  if (code != cudaSuccess || !has_sums) return code;
  const u64 width = static_cast<u64>(op.groups) * op.width;
  const ChunkSums chunks = {frame.scratch,
                            width,
                            {frame.floats(op.gain_gradient), frame.floats(op.shift_gradient),
                             frame.floats(op.bias_gradient)}};
  return launch_kernel(frame.stream, dim3(blocks_for(width, kSumThreads), kSums), kSumThreads, 0,
                       add_chunks, chunks);
}

cudaError_t launch_op(const CudaFrame& frame, const ColumnSumOp& op) {
  const u64 width = static_cast<u64>(op.width);
  const unsigned blocks = blocks_for(width, kSumThreads);
  const cudaError_t code =
      launch_kernel(frame.stream, dim3(blocks, kChunks), kSumThreads, 0, sum_columns,
                    frame.floats(op.values), op.rows, width, frame.scratch);
  if (code != cudaSuccess) return code;
  const ChunkSums chunks = {frame.scratch, width, {frame.floats(op.sums), nullptr, nullptr}};
  return launch_kernel(frame.stream, dim3(blocks, 1), kSumThreads, 0, add_chunks, chunks);
}

}  // namespace millrace

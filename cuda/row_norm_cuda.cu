// Rows of parameters to their lengths, and the targets after them: a warp takes one row, whichever
// tensor it belongs to.
#include "elementary.h"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {
namespace {

constexpr int kMaxBlocks = 32;
constexpr int kThreads = 256;
constexpr int kRowsOfABlock = kThreads / kWarp;

struct Rows {
  int count;                      // blocks
  int first_row[kMaxBlocks + 1];  // of a block, among all rows
  RowBlock blocks[kMaxBlocks];
  float* parameters;
  const float* finite;
  float* target;                        // or null
  Bf16 *parameters_copy, *target_copy;  // that products read; or null
};

__global__ void __launch_bounds__(kThreads)
    scale_rows(const Arguments* arguments, const __grid_constant__ Rows rows) {
  const int row = static_cast<int>(blockIdx.x) * kRowsOfABlock + threadIdx.x / kWarp;
  if (row >= rows.first_row[rows.count] || *rows.finite != 1.0f) return;
  int block = 0;
  while (row >= rows.first_row[block + 1]) ++block;
  const RowBlock& own = rows.blocks[block];
  const u64 first = own.first + static_cast<u64>(row - rows.first_row[block]) * own.width;
  float* const values = rows.parameters + first;
  const WarpTeam team;
  float scale = 1.0f;
  if (own.length > 0.0f) {
    float squares = 0.0f;
#pragma unroll 8
    for (int i = team.lane(); i < own.width; i += kWarp) squares += values[i] * values[i];
    squares = team.sum(squares);
    // A row of zeros has no direction and stays.
    scale = squares > 0.0f ? own.length / mr_sqrt(squares) : 1.0f;
  }
  const float rate = arguments->target_rate;
#pragma unroll 4
  for (int i = team.lane(); i < own.width; i += kWarp) {
    const float value = values[i] * scale;
    values[i] = value;
    if (rows.parameters_copy != nullptr) rows.parameters_copy[first + i] = static_cast<Bf16>(value);
    if (rows.target == nullptr) continue;
    const float before = rows.target[first + i];
    const float moved = before + rate * (value - before);
    rows.target[first + i] = moved;
    if (rows.target_copy != nullptr) rows.target_copy[first + i] = static_cast<Bf16>(moved);
  }
}

}  // namespace

cudaError_t launch_op(const CudaFrame& frame, const NormaliseRowsOp& op) {
  if (op.blocks.size() > kMaxBlocks) return cudaErrorInvalidValue;
  Rows rows{};
  rows.count = static_cast<int>(op.blocks.size());
  for (int i = 0; i < rows.count; ++i) {
    rows.blocks[i] = op.blocks[static_cast<size_t>(i)];
    rows.first_row[i + 1] = rows.first_row[i] + rows.blocks[i].rows;
  }
  rows.parameters = frame.floats(op.parameters);
  rows.finite = frame.floats(op.finite);
  rows.target = frame.floats(op.target);
  rows.parameters_copy = frame.product_copy(op.parameters);
  rows.target_copy = frame.product_copy(op.target);
  const u64 all = static_cast<u64>(rows.first_row[rows.count]);
  return launch_kernel(frame.stream, blocks_for(all, kRowsOfABlock), kThreads, 0, scale_rows,
                       frame.arguments, rows);
}

}  // namespace millrace

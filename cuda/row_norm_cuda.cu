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
constexpr int kVector = 4;
constexpr int kOwn = 32;  // columns of a lane that wait in registers while the row is measured

struct Rows {
  int count;                      // blocks
  int first_row[kMaxBlocks + 1];  // of a block, among all rows
  RowBlock blocks[kMaxBlocks];
  float* parameters;
  const float* finite;
  float* target;                        // or null
  Bf16 *parameters_copy, *target_copy;  // that products read; or null
  int are_aligned;                      // all of them, for vectors of kVector
};

// What becomes of one value of the row that begins at `first`.
struct RowStep {
  const Rows& rows;
  u64 first;
  float scale, target_rate;

  __device__ float moved(float target, float value) const {
    return target + target_rate * (value - target);
  }
};

// kColumns values side by side.
template <int kColumns>
__device__ void finish(const RowStep& step, int column, Packed<float, kColumns> pack) {
  const u64 at = step.first + static_cast<u64>(column);
  Packed<float, kColumns> target{};
  Packed<Bf16, kColumns> copy, target_copy;
  if (step.rows.target != nullptr) {
    target = *reinterpret_cast<const Packed<float, kColumns>*>(step.rows.target + at);
  }
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    pack.values[j] *= step.scale;
    copy.values[j] = static_cast<Bf16>(pack.values[j]);
    target.values[j] = step.moved(target.values[j], pack.values[j]);
    target_copy.values[j] = static_cast<Bf16>(target.values[j]);
  }
  *reinterpret_cast<Packed<float, kColumns>*>(step.rows.parameters + at) = pack;
  if (step.rows.parameters_copy != nullptr) {
    *reinterpret_cast<Packed<Bf16, kColumns>*>(step.rows.parameters_copy + at) = copy;
  }
  if (step.rows.target == nullptr) return;
  *reinterpret_cast<Packed<float, kColumns>*>(step.rows.target + at) = target;
  if (step.rows.target_copy != nullptr) {
    *reinterpret_cast<Packed<Bf16, kColumns>*>(step.rows.target_copy + at) = target_copy;
  }
}

// A row of zeros has no direction and stays.
__device__ float scale_of(float length, float squares) {
  return squares > 0.0f ? length / mr_sqrt(squares) : 1.0f;
}

__global__ void __launch_bounds__(kThreads)
    scale_rows(const Arguments* arguments, const __grid_constant__ Rows rows) {
  wait_for_kernels_before();
  const int row = static_cast<int>(blockIdx.x) * kRowsOfABlock + threadIdx.x / kWarp;
  if (row >= rows.first_row[rows.count] || *rows.finite != 1.0f) return;
  int block = 0;
  while (row >= rows.first_row[block + 1]) ++block;
  const RowBlock& own = rows.blocks[block];
  const WarpTeam team;
  RowStep step = {rows, own.first + static_cast<u64>(row - rows.first_row[block]) * own.width, 1.0f,
                  arguments->target_rate};
  const float* const values = rows.parameters + step.first;
  const bool has_vectors = rows.are_aligned && own.first % kVector == 0 && own.width % kVector == 0;
  if (has_vectors && own.width <= kOwn * kWarp) {
    OwnRow<float, kOwn, kVector> kept{};
    kept.read(values, own.width);
    if (own.length > 0.0f) {
      float squares = 0.0f;
#pragma unroll
      for (int i = 0; i < kept.kPacks; ++i) {
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          squares += kept.packs[i].values[j] * kept.packs[i].values[j];
        }
      }
      step.scale = scale_of(own.length, team.sum(squares));
    }
#pragma unroll
    for (int i = 0; i < kept.kPacks; ++i) {
      const int column = (i * kWarp + team.lane()) * kVector;
      if (column < own.width) finish<kVector>(step, column, kept.packs[i]);
    }
    return;
  }
  if (own.length > 0.0f) {
    float squares = 0.0f;
    for (int i = team.lane(); i < own.width; i += kWarp) squares += values[i] * values[i];
    step.scale = scale_of(own.length, team.sum(squares));
  }
  for (int i = team.lane(); i < own.width; i += kWarp) finish<1>(step, i, {{values[i]}});
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
  rows.are_aligned =
      are_aligned({rows.parameters, rows.target}, sizeof(Packed<float, kVector>)) &&
      are_aligned({rows.parameters_copy, rows.target_copy}, sizeof(Packed<Bf16, kVector>));
  const u64 all = static_cast<u64>(rows.first_row[rows.count]);
  return launch_kernel(frame.stream, blocks_for(all, kRowsOfABlock), kThreads, 0, scale_rows,
                       frame.arguments, rows);
}

}  // namespace millrace

#include "row_norm.h"

#include "elementary.h"
#include "lanes.h"

namespace millrace {
namespace {

// A row of zeros has no direction and stays.
MR_CLONES void scale_row(float* row, int width, float length) {
  const float squares = lane_dot(row, row, width);
  if (!(squares > 0.0f)) return;
  const float scale = length / mr_sqrt(squares);
  for (int i = 0; i < width; ++i) row[i] *= scale;
}

MR_CLONES void move_target(const float* __restrict row, float* __restrict target, float rate,
                           int width) {
  for (int i = 0; i < width; ++i) target[i] += rate * (row[i] - target[i]);
}

}  // namespace

void execute(const NormaliseRowsOp& op, const CpuFrame& frame) {
  if (frame.scalar(op.finite) != 1.0f) return;
  for (const RowBlock& block : op.blocks) {
    for (int r = 0; r < block.rows; ++r) {
      const uint64_t at = block.first + static_cast<uint64_t>(r) * block.width;
      float* row = frame.floats(op.parameters + at);
      if (block.length > 0.0f) scale_row(row, block.width, block.length);
      if (!op.target.used()) continue;
      move_target(row, frame.floats(op.target + at), frame.arguments.target_rate, block.width);
    }
  }
}

}  // namespace millrace

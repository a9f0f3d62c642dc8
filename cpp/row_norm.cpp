#include "row_norm.h"

#include <cstdint>

#include "elementary.h"
#include "lanes.h"

namespace millrace {
namespace {

MR_CLONES void scale_row(float* row, int width, float length) {
  const float squares = lane_dot(row, row, width);
  if (!(squares > 0.0f)) return;
  const float scale = length / mr_sqrt(squares);
  for (int i = 0; i < width; ++i) row[i] *= scale;
}

}  // namespace

void scale_rows(const std::vector<RowBlock>& blocks, float* parameters) {
  for (const RowBlock& block : blocks) {
    if (!(block.length > 0.0f)) continue;
    for (int r = 0; r < block.rows; ++r) {
      scale_row(parameters + block.first + static_cast<uint64_t>(r) * block.width, block.width,
                block.length);
    }
  }
}

}  // namespace millrace

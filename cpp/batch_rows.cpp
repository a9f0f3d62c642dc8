#include "batch_rows.h"

#include <cstring>

#include "lanes.h"

namespace millrace {
namespace {

MR_CLONES void normalise(float* values, const float* mean, const float* scale, int count) {
  for (int i = 0; i < count; ++i) values[i] = (values[i] - mean[i]) * scale[i];
}

}  // namespace

void execute(const UnpackOp& op, const CpuFrame& frame) {
  const Arguments& arguments = frame.arguments;
  const bool has_mirror = op.rows > op.source_rows;
  const int32_t* source = has_mirror ? frame.integers(op.mirror_source) : nullptr;
  const float* sign = has_mirror ? frame.floats(op.mirror_sign) : nullptr;
  for (int r = 0; r < op.rows; ++r) {
    float* target = frame.floats(op.target) + static_cast<size_t>(r) * op.target_stride;
    if (r < op.source_rows) {
      std::memcpy(target, arguments.rows + r * arguments.row_stride + op.column,
                  op.width * sizeof(float));
    } else {
      const float* row = arguments.rows + (r - op.source_rows) * arguments.row_stride + op.column;
      for (int i = 0; i < op.width; ++i) target[i] = sign[i] * row[source[i]];
    }
    if (op.mean.used()) normalise(target, frame.floats(op.mean), frame.floats(op.scale), op.width);
  }
}

}  // namespace millrace

#include "batch_rows.h"

#include <cstring>

#include "lanes.h"

namespace millrace {
namespace {

MR_CLONES void normalise(float* values, const float* mean, const float* scale, int count) {
  for (int i = 0; i < count; ++i) values[i] = (values[i] - mean[i]) * scale[i];
}

void unpack(const UnpackOp& op, const UnpackPart& part, const CpuFrame& frame) {
  const Arguments& arguments = frame.arguments;
  const bool has_mirror = op.rows > op.source_rows;
  const int32_t* source = has_mirror ? frame.integers(part.mirror_source) : nullptr;
  const float* sign = has_mirror ? frame.floats(part.mirror_sign) : nullptr;
  for (int r = 0; r < op.rows; ++r) {
    float* target = frame.floats(part.target) + static_cast<size_t>(r) * part.target_stride;
    if (r < op.source_rows) {
      std::memcpy(target, arguments.rows + r * arguments.row_stride + part.column,
                  part.width * sizeof(float));
    } else {
      const float* row = arguments.rows + (r - op.source_rows) * arguments.row_stride + part.column;
      for (int i = 0; i < part.width; ++i) target[i] = sign[i] * row[source[i]];
    }
    if (part.mean.used()) {
      normalise(target, frame.floats(part.mean), frame.floats(part.scale), part.width);
    }
  }
}

}  // namespace

void execute(const UnpackOp& op, const CpuFrame& frame) {
  for (const UnpackPart& part : op.parts) unpack(op, part, frame);
}

}  // namespace millrace

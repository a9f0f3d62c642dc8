// The launch of batch.metal.
#include "program_metal.h"

namespace millrace {

bool add_op(MetalDispatches& to, const MetalFrame& frame, const UnpackOp& op) {
  UnpackArgs arguments{};
  arguments.arguments = frame.arguments;
  arguments.rows = op.rows;
  arguments.source_rows = op.source_rows;
  for (const UnpackPart& part : op.parts) {
    arguments.parts[arguments.count++] = {part.column,
                                          part.width,
                                          part.target_stride,
                                          frame.floats(part.target),
                                          frame.integers(part.mirror_source),
                                          frame.floats(part.mirror_sign),
                                          frame.floats(part.mean),
                                          frame.floats(part.scale)};
  }
  add_rows(to, "unpack_rows", static_cast<u64>(op.rows), arguments);
  return true;
}

}  // namespace millrace

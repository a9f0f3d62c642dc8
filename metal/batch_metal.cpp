// The launch of batch.metal.
#include "program_metal.h"

namespace millrace {

bool add_op(MetalDispatches& to, const MetalFrame& frame, const UnpackOp& op) {
  const UnpackArgs arguments = {frame.arguments,
                                op.rows,
                                op.source_rows,
                                op.column,
                                op.width,
                                op.target_stride,
                                frame.floats(op.target),
                                frame.integers(op.mirror_source),
                                frame.floats(op.mirror_sign),
                                frame.floats(op.mean),
                                frame.floats(op.scale)};
  add_rows(to, "unpack_rows", static_cast<u64>(op.rows), arguments);
  return true;
}

}  // namespace millrace

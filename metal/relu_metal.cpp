// The launch of relu.metal.
#include "program_metal.h"

namespace millrace {

bool add_op(MetalDispatches& to, const MetalFrame& frame, const ReluBackwardOp& op) {
  const u64 count = static_cast<u64>(op.rows) * static_cast<u64>(op.width);
  const ReluBackwardArgs arguments = {count, frame.floats(op.gradient), frame.floats(op.output)};
  add_elements(to, "relu_backward", count, arguments);
  return true;
}

}  // namespace millrace

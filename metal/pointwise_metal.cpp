// The launches of pointwise.metal.
#include "program_metal.h"

namespace millrace {

bool add_op(MetalDispatches& to, const MetalFrame& frame, const PointwiseOp& op) {
  const InputSource a = frame.source(op.a);
  const PointwiseArgs arguments = {
      op.function,       op.count, a, op.b.used() ? frame.source(op.b) : a, frame.value(op.scalar),
      frame.floats(op.y)};
  add_elements(to, "pointwise", op.count, arguments);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const RandomFillOp& op) {
  const RandomFillArgs arguments = {frame.arguments, op.stream, op.environment, op.count,
                                    frame.floats(op.target)};
  add_elements(to, "random_fill", op.count, arguments);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const CopyInOp& op) {
  to.add_copy(frame.floats(op.target), frame.inputs.buffers[op.buffer], op.count * sizeof(float));
  return true;
}

}  // namespace millrace

// The launches of relu.metal.
#include "program_metal.h"

namespace millrace {
namespace {

ColumnChunks columns_of(const ReluBackwardOp& op, float* scratch) {
  return column_chunks(op.rows, static_cast<u64>(op.width), 1,
                       op.bias_gradient.used() ? scratch : nullptr);
}

}  // namespace

u64 metal_scratch_floats(const ReluBackwardOp& op) {
  return op.bias_gradient.used() ? partial_floats(columns_of(op, nullptr)) : 0;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const ReluBackwardOp& op) {
  const ColumnChunks columns = columns_of(op, frame.scratch);
  const ReluBackwardArgs arguments = {columns, frame.floats(op.gradient), frame.floats(op.output)};
  add_columns(to, "relu_backward", columns, arguments);
  if (op.bias_gradient.used()) add_chunk_sums(to, columns, frame.floats(op.bias_gradient));
  return true;
}

}  // namespace millrace

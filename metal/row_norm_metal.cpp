// The launch of row_norm.metal.
#include "program_metal.h"

namespace millrace {

bool add_op(MetalDispatches& to, const MetalFrame& frame, const NormaliseRowsOp& op) {
  if (op.blocks.size() > kMaxRowBlocks) return false;
  NormaliseRowsArgs arguments{};
  arguments.arguments = frame.arguments;
  arguments.count = static_cast<int>(op.blocks.size());
  for (size_t i = 0; i < op.blocks.size(); ++i) {
    arguments.blocks[i] = op.blocks[i];
    arguments.first_row[i + 1] = arguments.first_row[i] + op.blocks[i].rows;
  }
  arguments.parameters = frame.floats(op.parameters);
  arguments.finite = frame.floats(op.finite);
  arguments.target = frame.floats(op.target);
  add_rows(to, "scale_rows", static_cast<u64>(arguments.first_row[arguments.count]), arguments);
  return true;
}

}  // namespace millrace

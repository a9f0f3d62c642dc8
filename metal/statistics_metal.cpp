// The launch of statistics.metal.
#include "program_metal.h"

namespace millrace {

bool add_op(MetalDispatches& to, const MetalFrame& frame, const StatisticsOp& op) {
  if (op.folds.size() > kMaxScalars) return false;
  StatisticsArgs arguments{};
  arguments.count = static_cast<u32>(op.folds.size());
  for (size_t i = 0; i < op.folds.size(); ++i) arguments.folds[i] = op.folds[i];
  arguments.scalars = frame.floats(op.scalars);
  arguments.finite = frame.floats(op.finite);
  arguments.totals = frame.floats(op.totals);
  to.add("fold_scalars", arguments, 1, kMaxScalars);
  return true;
}

}  // namespace millrace

// The launches of rms_norm.metal.
#include "program_metal.h"

namespace millrace {
namespace {

u64 width_of(const RmsNormBackwardOp& op) {
  return static_cast<u64>(op.groups) * static_cast<u64>(op.width);
}

u64 all_rows(const RmsNormArgs& norm) {
  return static_cast<u64>(norm.rows) * static_cast<u64>(norm.groups);
}

}  // namespace

u64 metal_scratch_floats(const RmsNormBackwardOp& op) {
  if (!op.gain_gradient.used()) return 0;
  return partial_floats(column_chunks(op.rows, width_of(op), 1, nullptr));
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const RmsNormForwardOp& op) {
  const RmsNormArgs norm = {op.rows,
                            op.groups,
                            op.width,
                            nullptr,
                            frame.floats(op.input),
                            frame.floats(op.gain),
                            frame.floats(op.inverse_rms),
                            frame.floats(op.output)};
  add_rows(to, "rms_forward", all_rows(norm), norm);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const RmsNormBackwardOp& op) {
  const RmsNormArgs norm = {op.rows,
                            op.groups,
                            op.width,
                            frame.floats(op.gradient),
                            frame.floats(op.input),
                            frame.floats(op.gain),
                            frame.floats(op.inverse_rms),
                            frame.floats(op.input_gradient)};
  if (op.gain_gradient.used()) {
    const ColumnChunks columns = column_chunks(op.rows, width_of(op), 1, frame.scratch);
    add_columns(to, "rms_gain_sums", columns, RmsNormSumsArgs{columns, norm});
    add_chunk_sums(to, columns, frame.floats(op.gain_gradient));
  }
  add_rows(to, "rms_backward", all_rows(norm), norm);
  return true;
}

}  // namespace millrace

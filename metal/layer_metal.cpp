// The launches of layer.metal and column_sum.metal.
#include "program_metal.h"

namespace millrace {
namespace {

constexpr u32 kLayerSums = 3;  // gain, shift, bias

u64 width_of(const LayerBackwardOp& op) {
  return static_cast<u64>(op.groups) * static_cast<u64>(op.width);
}

template <class LayerOp>
LayerArgs layer_of(const MetalFrame& frame, const LayerOp& op, Operand out) {
  return {op.rows,
          op.groups,
          op.width,
          frame.floats(op.linear),
          frame.floats(op.bias),
          frame.floats(op.gain),
          frame.floats(op.shift),
          frame.floats(op.mean),
          frame.floats(op.inverse_deviation),
          frame.floats(out)};
}

u64 all_rows(const LayerArgs& layer) {
  return static_cast<u64>(layer.rows) * static_cast<u64>(layer.groups);
}

}  // namespace

u64 metal_scratch_floats(const DenseForwardOp& op) { return metal_scratch_floats(op.product); }

u64 metal_scratch_floats(const LayerBackwardOp& op) {
  if (!op.bias_gradient.used()) return 0;
  return partial_floats(column_chunks(op.rows, width_of(op), kLayerSums, nullptr));
}

u64 metal_scratch_floats(const ColumnSumOp& op) {
  return partial_floats(column_chunks(op.rows, static_cast<u64>(op.width), 1, nullptr));
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const DenseForwardOp& op) {
  if (!add_op(to, frame, op.product)) return false;
  const LayerArgs layer = layer_of(frame, op.layer, op.layer.output);
  add_rows(to, "layer_forward", all_rows(layer), layer);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const LayerBackwardOp& op) {
  const LayerArgs layer = layer_of(frame, op, op.gradient);
  const bool has_sums = op.bias_gradient.used();
  const ColumnChunks columns = column_chunks(op.rows, width_of(op), kLayerSums, frame.scratch);
  if (has_sums) {
    add_columns(to, "layer_parameter_sums", columns, LayerSumsArgs{columns, layer});
  }
  add_rows(to, "layer_backward", all_rows(layer), layer);
  if (has_sums) {
    const u32 bias = kLayerSums - 1;
    add_columns(to, "column_sum", columns, ColumnSumArgs{columns, bias, frame.floats(op.gradient)});
    add_chunk_sums(to, columns, frame.floats(op.gain_gradient), frame.floats(op.shift_gradient),
                   frame.floats(op.bias_gradient));
  }
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const ColumnSumOp& op) {
  const ColumnChunks columns = column_chunks(op.rows, static_cast<u64>(op.width), 1, frame.scratch);
  add_columns(to, "column_sum", columns, ColumnSumArgs{columns, 0, frame.floats(op.values)});
  add_chunk_sums(to, columns, frame.floats(op.sums));
  return true;
}

}  // namespace millrace

// The launches of batch_norm.metal.
#include "program_metal.h"

namespace millrace {
namespace {

constexpr u32 kNormSums = 2;

u64 width_of(const BatchNorm& norm) {
  return static_cast<u64>(norm.groups) * static_cast<u64>(norm.width);
}

// Behind the chunks' parts of the sums stand the sums.
u64 sums_floats(const BatchNorm& norm) {
  return partial_floats(column_chunks(norm.rows, width_of(norm), kNormSums, nullptr)) +
         kNormSums * width_of(norm);
}

BatchNormArgs norm_of(const MetalFrame& frame, const BatchNorm& norm) {
  return {column_chunks(norm.rows, width_of(norm), kNormSums, frame.scratch),
          norm.groups,
          norm.width,
          static_cast<u64>(norm.input_stride),
          norm.input_distance,
          frame.floats(norm.input),
          frame.floats(norm.affine),
          frame.floats(norm.mean),
          frame.floats(norm.variance),
          norm.is_training ? 1 : 0,
          norm.has_relu ? 1 : 0};
}

float* sums_of(const MetalFrame& frame, const BatchNormArgs& norm) {
  return frame.scratch + partial_floats(norm.columns);
}

}  // namespace

u64 metal_scratch_floats(const BatchNormForwardOp& op) {
  return op.norm.is_training ? sums_floats(op.norm) : 0;
}

u64 metal_scratch_floats(const BatchNormBackwardOp& op) {
  return op.norm.is_training || op.affine_gradient.used() ? sums_floats(op.norm) : 0;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const BatchNormForwardOp& op) {
  const BatchNormArgs norm = norm_of(frame, op.norm);
  if (op.norm.is_training) {
    float* const sums = sums_of(frame, norm);
    add_columns(to, "batch_norm_sums", norm.columns, norm);
    add_chunk_sums(to, norm.columns, sums, sums + norm.columns.width);
    add_elements(to, "batch_norm_statistics", norm.columns.width,
                 BatchNormStatisticsArgs{norm, sums});
  }
  add_columns(to, "batch_norm_forward", norm.columns,
              BatchNormOutputArgs{norm, frame.floats(op.residual), frame.floats(op.output)}, false);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const BatchNormBackwardOp& op) {
  const BatchNormArgs norm = norm_of(frame, op.norm);
  const bool has_sums = op.norm.is_training || op.affine_gradient.used();
  float* const sums = sums_of(frame, norm);
  const BatchNormGradientArgs arguments = {
      norm, frame.floats(op.gradient), has_sums ? sums : nullptr, frame.floats(op.input_gradient)};
  if (op.input_gradient.used() && op.norm.input_distance == 0) {
    if (has_sums) return false;  // nothing needs the sum over groups then
    const u64 count = static_cast<u64>(op.norm.rows) * static_cast<u64>(op.norm.width);
    add_elements(to, "batch_norm_shared_backward", count, arguments);
    return true;
  }
  if (has_sums) {
    add_columns(to, "batch_norm_gradient_sums", norm.columns, arguments);
    add_chunk_sums(to, norm.columns, sums, sums + norm.columns.width);
  }
  if (op.affine_gradient.used()) {
    add_elements(
        to, "batch_norm_affine", norm.columns.width,
        AffineGradientArgs{norm.groups, norm.width, sums, frame.floats(op.affine_gradient)});
  }
  if (op.input_gradient.used()) {
    add_columns(to, "batch_norm_backward", norm.columns, arguments, false);
  }
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const RunningStatisticsOp& op) {
  const RunningStatisticsArgs arguments = {
      op.count, frame.floats(op.batch), frame.floats(op.running), frame.floats(op.finite),
      op.share, op.correction};
  add_elements(to, "move_statistics", 2 * op.count, arguments);
  return true;
}

}  // namespace millrace

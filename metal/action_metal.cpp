// The launches of action.metal.
#include "program_metal.h"

namespace millrace {

u64 metal_scratch_floats(const MeanDeviationOp&) { return kParts; }

bool add_op(MetalDispatches& to, const MetalFrame& frame, const SampleActionOp& op) {
  const SampleActionArgs arguments = {frame.arguments,
                                      op.rows,
                                      op.actions,
                                      op.heads_stride,
                                      op.action_stride,
                                      op.density,
                                      op.deterministic ? 1 : 0,
                                      op.stream,
                                      op.first_normal,
                                      frame.floats(op.heads),
                                      frame.floats(op.bias),
                                      frame.counter(op.drawn_at),
                                      frame.floats(op.action),
                                      frame.floats(op.noise),
                                      frame.floats(op.log_probability)};
  add_rows(to, "sample_actions", static_cast<u64>(op.rows), arguments);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const ActionGradientOp& op) {
  const ActionGradientArgs arguments = {op.rows,
                                        op.actions,
                                        op.heads_stride,
                                        op.action_gradient_stride,
                                        op.density,
                                        frame.floats(op.heads),
                                        frame.floats(op.bias),
                                        frame.floats(op.noise),
                                        frame.floats(op.action_gradient),
                                        frame.floats(op.log_alpha),
                                        frame.floats(op.heads_gradient)};
  add_rows(to, "action_gradients", static_cast<u64>(op.rows), arguments);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const MeanDeviationOp& op) {
  const DeviationArgs arguments = {op.rows,
                                   op.actions,
                                   op.heads_stride,
                                   op.density,
                                   frame.floats(op.heads),
                                   frame.floats(op.bias),
                                   frame.scratch};
  add_parts(to, "sum_deviations", arguments);
  const float count = static_cast<float>(op.rows) * static_cast<float>(op.actions);
  add_finish(to, "mean_of_parts",
             MeanOfPartsArgs{frame.scratch, count, frame.floats(op.mean_deviation)});
  return true;
}

}  // namespace millrace

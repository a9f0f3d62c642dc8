// The launches of scalar.metal.
#include "program_metal.h"

namespace millrace {
namespace {

template <class AnyOp>
ScalarValues values_of(const MetalFrame& frame, const AnyOp& op) {
  return {op.rows, op.groups, op.value_stride, frame.floats(op.values), frame.floats(op.bias)};
}

}  // namespace

bool add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarTargetOp& op) {
  const ScalarTargetArgs arguments = {
      frame.arguments,
      values_of(frame, op),
      {op.source_rows, op.reward_column, op.done_column, op.truncated_column, op.gamma,
       frame.floats(op.log_probability), frame.floats(op.log_alpha)},
      frame.floats(op.target)};
  add_elements(to, "scalar_targets", static_cast<u64>(op.rows), arguments);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarCriticLossOp& op) {
  const ScalarCriticLossArgs arguments = {
      values_of(frame, op),      frame.floats(op.target),     frame.floats(op.values_gradient),
      frame.floats(op.loss),     frame.floats(op.value_mean), frame.floats(op.value_max),
      frame.floats(op.value_min)};
  add_walk(to, "scalar_critic_loss", arguments);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarActorLossOp& op) {
  const ScalarActorLossArgs arguments = {
      values_of(frame, op),       frame.floats(op.log_probability),
      frame.floats(op.log_alpha), frame.floats(op.values_gradient),
      frame.floats(op.loss),      frame.floats(op.entropy)};
  add_walk(to, "scalar_actor_loss", arguments);
  return true;
}

}  // namespace millrace

// The launches of scalar.metal.
#include "program_metal.h"

namespace millrace {
namespace {

ScalarHeadArgs head_of(const MetalFrame& frame, const ScalarHead& op,
                       const ScalarHeadGradient& gradient) {
  return {op.rows,
          op.groups,
          op.width,
          frame.floats(op.hidden),
          frame.floats(op.weight),
          frame.floats(op.bias),
          op.weight_distance,
          op.bias_distance,
          frame.floats(gradient.hidden),
          gradient.is_relu ? 1 : 0};
}

}  // namespace

bool add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarTargetOp& op) {
  const ScalarTargetArgs arguments = {
      frame.arguments,
      head_of(frame, op.head, {}),
      {op.source_rows, op.reward_column, op.done_column, op.truncated_column, op.gamma,
       frame.floats(op.log_probability), frame.floats(op.log_alpha)},
      frame.floats(op.target)};
  add_rows(to, "scalar_targets", static_cast<u64>(op.head.rows), arguments);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarCriticGradientOp& op) {
  const ScalarCriticGradientArgs arguments = {head_of(frame, op.head, op.gradient),
                                              frame.floats(op.target), frame.floats(op.values),
                                              frame.floats(op.values_gradient)};
  add_rows(to, "scalar_critic_gradients", static_cast<u64>(op.head.rows), arguments);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarCriticLossOp& op) {
  const ScalarCriticLossArgs arguments = {op.rows,
                                          op.groups,
                                          frame.floats(op.values),
                                          frame.floats(op.target),
                                          frame.floats(op.loss),
                                          frame.floats(op.value_mean),
                                          frame.floats(op.value_max),
                                          frame.floats(op.value_min)};
  add_walk(to, "scalar_critic_loss", arguments);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarActorGradientOp& op) {
  const ScalarActorGradientArgs arguments = {head_of(frame, op.head, op.gradient),
                                             frame.floats(op.least_values)};
  add_rows(to, "scalar_actor_gradients", static_cast<u64>(op.head.rows), arguments);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const ScalarActorLossOp& op) {
  const ScalarActorLossArgs arguments = {op.rows,
                                         frame.floats(op.least_values),
                                         frame.floats(op.log_probability),
                                         frame.floats(op.log_alpha),
                                         frame.floats(op.loss),
                                         frame.floats(op.entropy)};
  add_walk(to, "scalar_actor_loss", arguments);
  return true;
}

}  // namespace millrace

// The launches of optimizer.metal.
#include <cmath>

#include "program_metal.h"

namespace millrace {
namespace {

constexpr u64 kStepFloats = (sizeof(AdamWStep) + sizeof(float) - 1) / sizeof(float);

AdamWDecays decays_of(const AdamWConstants& constants) {
  const auto log_of = [](float decay) {
    return static_cast<float>(std::log(static_cast<double>(decay)));
  };
  return {constants, log_of(constants.beta1), log_of(constants.beta2)};
}

}  // namespace

u64 metal_scratch_floats(const GradientNormOp&) { return kParts; }

u64 metal_scratch_floats(const AdamWOp&) { return kStepFloats; }

bool add_op(MetalDispatches& to, const MetalFrame& frame, const GradientNormOp& op) {
  add_parts(to, "sum_squares", SumSquaresArgs{op.count, frame.floats(op.gradient), frame.scratch});
  const FinishNormArgs arguments = {
      frame.scratch,         op.max_norm,           op.opens ? 1 : 0,       frame.floats(op.loss),
      frame.floats(op.norm), frame.floats(op.clip), frame.floats(op.finite)};
  add_finish(to, "finish_norm", arguments);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const AdamWOp& op) {
  AdamWStep* const step = reinterpret_cast<AdamWStep*>(frame.scratch);
  const BeginStepArgs begin = {
      frame.arguments,         decays_of(op.constants), op.rate, frame.floats(op.clip),
      frame.floats(op.finite), frame.counter(op.step),  step};
  to.add("begin_step", begin, 1, kSimdWidth);
  const AdamWArgs arguments = {step,
                               frame.floats(op.finite),
                               op.count,
                               frame.floats(op.gradient),
                               frame.floats(op.parameters),
                               frame.floats(op.first_moment),
                               frame.floats(op.second_moment),
                               frame.floats(op.target)};
  add_elements(to, "adamw", op.count, arguments);
  return true;
}

bool add_op(MetalDispatches& to, const MetalFrame& frame, const TemperatureOp& op) {
  const TemperatureArgs arguments = {frame.arguments,
                                     op.rows,
                                     decays_of(op.constants),
                                     op.target_entropy,
                                     frame.floats(op.log_probability),
                                     frame.floats(op.log_alpha),
                                     frame.floats(op.first_moment),
                                     frame.floats(op.second_moment),
                                     frame.counter(op.step),
                                     frame.floats(op.finite),
                                     frame.floats(op.loss),
                                     frame.floats(op.alpha),
                                     frame.floats(op.gradient)};
  add_walk(to, "step_temperature", arguments);
  return true;
}

}  // namespace millrace

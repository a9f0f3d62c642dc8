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

// The verdict about the gradient; leaves its parts in scratch.
void add_measure(MetalDispatches& to, const MetalFrame& frame, const AdamWOp& op) {
  add_parts(to, "sum_squares", SumSquaresArgs{op.count, frame.floats(op.gradient), frame.scratch});
  const FinishNormArgs arguments = {
      frame.scratch,         op.max_norm,           op.opens ? 1 : 0,       frame.floats(op.loss),
      frame.floats(op.norm), frame.floats(op.clip), frame.floats(op.finite)};
  add_finish(to, "finish_norm", arguments);
}

void add_rows_of(MetalDispatches& to, const MetalFrame& frame, const AdamWOp& op) {
  ScaleRowsArgs arguments{};
  arguments.arguments = frame.arguments;
  arguments.count = static_cast<int>(op.rows.size());
  for (size_t i = 0; i < op.rows.size(); ++i) {
    arguments.blocks[i] = op.rows[i];
    arguments.first_row[i + 1] = arguments.first_row[i] + op.rows[i].rows;
  }
  arguments.parameters = frame.floats(op.parameters);
  arguments.finite = frame.floats(op.finite);
  arguments.target = frame.floats(op.target);
  add_rows(to, "scale_rows", static_cast<u64>(arguments.first_row[arguments.count]), arguments);
}

}  // namespace

u64 metal_scratch_floats(const AdamWOp&) { return kParts + kStepFloats; }

bool add_op(MetalDispatches& to, const MetalFrame& frame, const AdamWOp& op) {
  if (op.rows.size() > kMaxRowBlocks) return false;
  add_measure(to, frame, op);
  AdamWStep* const step = reinterpret_cast<AdamWStep*>(frame.scratch + kParts);
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
                               op.rows.empty() ? frame.floats(op.target) : nullptr};
  add_elements(to, "adamw", op.count, arguments);
  if (!op.rows.empty()) add_rows_of(to, frame, op);
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

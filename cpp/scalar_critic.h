// Scalar twin critics (plain SAC): the soft target of the smaller next value, the squared error and
// the actor's loss through the smaller value.
#pragma once

#include "program_cpu.h"

namespace millrace {

void execute(const ScalarTargetOp& op, const CpuFrame& frame);
void execute(const ScalarCriticGradientOp& op, const CpuFrame& frame);
void execute(const ScalarCriticLossOp& op, const CpuFrame& frame);
void execute(const ScalarActorGradientOp& op, const CpuFrame& frame);
void execute(const ScalarActorLossOp& op, const CpuFrame& frame);

}  // namespace millrace

// Categorical critics (C51): the projected target, the cross-entropy loss and the actor's loss
// through the expected values. Logits reach these ops without their bias.
#pragma once

#include "program_cpu.h"

namespace millrace {

// Moves `probabilities` from the support z to reward + discount z and splits each atom's mass
// between its two neighbours. Mass is kept for every reward, beyond the support too.
void project_distribution(const Support& support, const float* probabilities, float reward,
                          float discount, float* target);

void execute(const ProjectTargetOp& op, const CpuFrame& frame);
void execute(const CriticLossOp& op, const CpuFrame& frame);
void execute(const ActorLossOp& op, const CpuFrame& frame);

}  // namespace millrace

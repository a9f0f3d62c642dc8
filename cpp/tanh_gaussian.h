// The tanh-squashed Gaussian policy: sampling with its log-probability, and the gradient of the
// actor's loss through both.
#pragma once

#include "program_cpu.h"

namespace millrace {

// out[i] = random_normal(source, first + i), bit for bit, several at a time.
void fill_normals(RandomSource source, u32 first, int count, float* out);

void execute(const SampleActionOp& op, const CpuFrame& frame);
void execute(const ActionGradientOp& op, const CpuFrame& frame);

}  // namespace millrace

// The tanh-squashed Gaussian policy: sampling with its log-probability, and the gradient of the
// actor's loss through both.
#pragma once

#include "program_cpu.h"

namespace millrace {

// out[r * columns + i] = random_normal(source with environment + r, first + i), bit for bit; with
// `ticks`, of ticks[r].
void fill_normals(RandomSource source, const uint64_t* ticks, u32 first, int rows, int columns,
                  float* out);

void execute(const SampleActionOp& op, const CpuFrame& frame);
void execute(const ActionGradientOp& op, const CpuFrame& frame);
void execute(const MeanDeviationOp& op, const CpuFrame& frame);

}  // namespace millrace

// The seeded gather of cpp/gather.h as a kernel: the same rows as on the CPU, drawn on the device.
#pragma once

#include <cuda_runtime.h>

#include "gather.h"

namespace millrace {

// Enqueues; the result says whether the launch was accepted.
cudaError_t launch_gather(cudaStream_t stream, const Gather& gather);

}  // namespace millrace

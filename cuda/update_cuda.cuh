// The update step of cpp/update_body.h as one kernel: all seven stages, one warp per environment.
#pragma once

#include <cuda_runtime.h>

#include "update_launch.h"

namespace millrace {

// Enqueues; the result says whether the launch was accepted.
cudaError_t launch_update(cudaStream_t stream, const UpdateLaunch& launch);

}  // namespace millrace

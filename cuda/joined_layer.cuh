// A dense layer and its product in one kernel, by the matrix units of Hopper (compute capability
// 9.0 alone), for rows in bf16: the first layer of wide networks, whose few inputs make its product
// all writing. The statistics of a row are those of fp32 sums, before the linear values are
// rounded.
#pragma once

#include "program_cuda.cuh"

namespace millrace {

// Whether the current device has what the kernel wants.
bool can_join_layers();

// Enqueues both. cudaErrorNotSupported, with nothing enqueued: the kernel is not made for this
// shape, storage or number of rows.
cudaError_t launch_joined_layer(const CudaFrame& frame, const DenseForwardOp& op);

}  // namespace millrace

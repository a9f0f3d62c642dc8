// Sums over rows in two steps of fixed order: kernels leave partial sums, one line of columns per
// chunk of rows; this adds the chunks up.
#pragma once

#include <cuda_runtime.h>

#include "portable.h"

namespace millrace {

constexpr int kMostChunkSums = 3;

// sums[which][column] = sum over chunks of partial[chunk][which][column], which < count.
struct ChunkSums {
  const float* partial;
  u64 width;
  int chunks, count;
  float* sums[kMostChunkSums];
};

cudaError_t launch_add_chunks(cudaStream_t stream, const ChunkSums& op);

}  // namespace millrace

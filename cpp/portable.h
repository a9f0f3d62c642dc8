// The few words that let one source serve g++, nvcc and the Metal compiler: freestanding C++14, no
// standard headers, no double.
#pragma once

#if defined(__CUDACC__)
#define MR_FN __host__ __device__ inline
#else
#define MR_FN inline
#endif

namespace millrace {

#if defined(__METAL_VERSION__)
typedef uint u32;
typedef ulong u64;
#else
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

}  // namespace millrace

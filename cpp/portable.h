// The few words that let one source serve g++, nvcc and the Metal compiler: freestanding C++14, no
// standard headers, no double.
#pragma once

#if defined(__CUDACC__)
#define MR_FN __host__ __device__ inline
#else
#define MR_FN inline
#endif
// A piece of a loop's body: inlined whatever its size, so that the loop vectorises.
#if defined(__CUDACC__)
#define MR_LOOP_FN __host__ __device__ __forceinline__
#elif defined(__METAL_VERSION__)
#define MR_LOOP_FN inline
#else
#define MR_LOOP_FN __attribute__((always_inline)) inline
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

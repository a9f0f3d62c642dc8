// The few words that let one source serve g++, nvcc and the Metal compiler: freestanding C++14, no
// standard headers, no double.
//
// Metal wants to be told of every pointer and reference where it leads; elsewhere these words are
// empty. What a kernel takes from the host (a task's parameters, the views of the state) is
// constant, the arrays that they point to are device, and locals are thread. Members of a class are
// called on thread objects: copy one from elsewhere first.
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

#if defined(__METAL_VERSION__)
#define MR_DEVICE device
#define MR_CONSTANT constant
#define MR_THREAD thread
#define MR_THREADGROUP threadgroup
#define MR_CONSTEXPR constexpr constant  // of constants outside of functions
#else
#define MR_DEVICE
#define MR_CONSTANT
#define MR_THREAD
#define MR_THREADGROUP
#define MR_CONSTEXPR constexpr
#endif

namespace millrace {

#if defined(__METAL_VERSION__)
typedef unsigned int u32;
typedef unsigned long u64;
#else
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

}  // namespace millrace

// Reductions that every instruction set adds up in the same order: sixteen running lanes, folded
// pairwise. (Without -fast-math flags a compiler may not reorder a plain sum, hence not vectorise
// it.)
//
// MR_CLONES compiles a function for several instruction sets; the processor's best is chosen when
// the library is loaded. No contraction and fixed lanes: all clones give the same bits.
#pragma once

#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define MR_CLONES  // sanitizers are not ready when the choice is made
#endif
#define MR_INLINE __attribute__((always_inline)) inline

namespace millrace {

constexpr int kLanes = 16;
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));

MR_INLINE float lane_sum(const float* x, int count) {
  Lanes total = {};
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Lanes chunk;
    std::memcpy(&chunk, x + i, sizeof(chunk));
    total += chunk;
  }
  for (int lane = 0; i + lane < count; ++lane) total[lane] += x[i + lane];
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) total[lane] += total[lane + half];
  }
  return total[0];
}

MR_INLINE float lane_dot(const float* x, const float* y, int count) {
  Lanes total = {};
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Lanes a, b;
    std::memcpy(&a, x + i, sizeof(a));
    std::memcpy(&b, y + i, sizeof(b));
    total += a * b;
  }
  for (int lane = 0; i + lane < count; ++lane) total[lane] += x[i + lane] * y[i + lane];
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) total[lane] += total[lane + half];
  }
  return total[0];
}

// A value that is not a number may be passed over.
MR_INLINE float lane_max(const float* x, int count) {
  Lanes top;
  for (int lane = 0; lane < kLanes; ++lane) top[lane] = x[0];
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Lanes chunk;
    std::memcpy(&chunk, x + i, sizeof(chunk));
    top = chunk > top ? chunk : top;
  }
  float best = top[0];
  for (int lane = 1; lane < kLanes; ++lane) best = top[lane] > best ? top[lane] : best;
  for (; i < count; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

}  // namespace millrace

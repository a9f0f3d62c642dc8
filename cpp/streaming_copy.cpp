#include "streaming_copy.h"

#if defined(__x86_64__)
#include <emmintrin.h>

#include <cstdint>
#include <cstring>
#else
#include <cstring>
#endif

namespace millrace {

#if defined(__x86_64__)

namespace {

constexpr size_t kVector = 4;  // floats of one store

void stream_one(float* to, const float* from) {
  int bits;
  std::memcpy(&bits, from, sizeof(bits));
  _mm_stream_si32(reinterpret_cast<int*>(to), bits);
}

}  // namespace

void streaming_copy(float* to, const float* from, size_t count) {
  size_t i = 0;
  for (; i < count && reinterpret_cast<uintptr_t>(to + i) % sizeof(__m128) != 0; ++i) {
    stream_one(to + i, from + i);
  }
  for (; i + kVector <= count; i += kVector) _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
  for (; i < count; ++i) stream_one(to + i, from + i);
}

void streaming_fence() { _mm_sfence(); }

#else

void streaming_copy(float* to, const float* from, size_t count) {
  std::memcpy(to, from, count * sizeof(float));
}

void streaming_fence() {}

#endif

}  // namespace millrace

// bf16 of CUDA for the shim, with the host's rounding.
#pragma once

#include <cstdint>

#include "bf16.h"

class __nv_bfloat16 {
 public:
  __nv_bfloat16() = default;
  explicit __nv_bfloat16(float value) : bits_(millrace::to_bf16(value)) {}
  operator float() const { return millrace::from_bf16(bits_); }

 private:
  uint16_t bits_;
};

inline __nv_bfloat16 __float2bfloat16_rn(float value) { return __nv_bfloat16(value); }
inline float __bfloat162float(__nv_bfloat16 value) { return value; }

struct __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {static_cast<__nv_bfloat16>(x), static_cast<__nv_bfloat16>(y)};
}

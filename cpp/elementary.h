// Elementary functions of the update step: float, from + - * / and sqrt only, so that every
// backend compiled without contraction gives the same bits. Freestanding; used by every backend.
//
// Relative error at most 3e-7 (sin and cos: absolute, for |x| <= 8192; beyond that the argument is
// folded by the float nearest 2 pi). NaN in gives NaN out. The polynomials interpolate each
// function at Chebyshev nodes of the reduced interval.
#pragma once

#include "portable.h"

namespace millrace {

MR_FN u32 mr_bits(float x) {
#if defined(__METAL_VERSION__)
  return as_type<u32>(x);
#elif defined(__CUDA_ARCH__)
  return __float_as_uint(x);
#else
  u32 bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  return bits;
#endif
}

MR_FN float mr_from_bits(u32 bits) {
#if defined(__METAL_VERSION__)
  return as_type<float>(bits);
#elif defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float x;
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
#endif
}

MR_FN float mr_sqrt(float x) {
#if defined(__METAL_VERSION__)
  return metal::precise::sqrt(x);
#elif defined(__CUDA_ARCH__)
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}

MR_FN float mr_infinity() { return mr_from_bits(0x7F800000u); }
MR_FN float mr_nan() { return mr_from_bits(0x7FC00000u); }
MR_FN bool mr_isfinite(float x) { return (mr_bits(x) & 0x7F800000u) != 0x7F800000u; }
MR_FN float mr_abs(float x) { return mr_from_bits(mr_bits(x) & 0x7FFFFFFFu); }
// The second operand where the two do not compare (NaN).
MR_FN float mr_min(float a, float b) { return a < b ? a : b; }
MR_FN float mr_max(float a, float b) { return a > b ? a : b; }

MR_FN float mr_floor(float x) {
  if (!(mr_abs(x) < 8388608.0f)) return x;  // 2^23: no fraction left, or not a number
  const float towards_zero = (float)(int)x;
  return towards_zero > x ? towards_zero - 1.0f : towards_zero;
}

// Remainder of x / y with the sign of x, exact.
MR_FN float mr_fmod(float x, float y) {
  const float divisor = mr_abs(y);
  float rest = mr_abs(x);
  if (!mr_isfinite(x) || !(divisor > 0.0f)) return mr_nan();
  float scaled = divisor;  // divisor times a power of two; each subtraction below is exact
  while (scaled <= 0.5f * rest) scaled = scaled + scaled;
  for (; scaled >= divisor; scaled = 0.5f * scaled) {
    if (rest >= scaled) rest = rest - scaled;
    if (scaled == divisor) break;
  }
  return mr_bits(x) >> 31 ? -rest : rest;
}

// Adding it rounds to the nearest integer, which then stands in the low bits.
#define MR_ROUND_MAGIC 12582912.0f  // 1.5 * 2^23

// Branch-free, so that loops over it vectorise.
MR_FN float mr_exp(float x) {
  x = x > 88.8f ? 88.8f : x;      // above: infinity
  x = x < -104.0f ? -104.0f : x;  // below: zero
  const float shifted = x * 1.44269504f + MR_ROUND_MAGIC;
  const float n = shifted - MR_ROUND_MAGIC;
  const float r = (x - n * 0.693115234f) - n * 3.19461833e-05f;  // n * ln 2, first part exact
  float p = 0.00019892992f;
  p = p * r + 0.00139354519f;
  p = p * r + 0.00833330862f;
  p = p * r + 0.0416664481f;
  p = p * r + 0.166666672f;
  p = p * r + 0.5f;
  p = (r * r) * p + r + 1.0f;
  // 2^n in two factors: n spans -150..128, more than one float exponent.
  const int power = (int)(mr_bits(shifted) - mr_bits(MR_ROUND_MAGIC));
  const int first = power >> 1;
  const float scale0 = mr_from_bits((u32)(first + 127) << 23);
  const float scale1 = mr_from_bits((u32)(power - first + 127) << 23);
  return p * scale0 * scale1;
}

// A device's own exponential where it has a fast one, a tenth of the instructions: 2 + 1.2 |x|
// units in the last place off at most. For learning, where such errors are far below a batch's
// noise; not for what must have the CPU's bits.
MR_FN float mr_fast_exp(float x) {
#if defined(__CUDA_ARCH__)
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.44269504f));
  return power;
#else
  return mr_exp(x);
#endif
}

// log(x) + exponent log 2 of a positive normal x; branch-free, so that loops over it vectorise.
MR_FN float mr_log_of_normal(float x, float exponent) {
  // x = m 2^e with m in [sqrt(1/2), sqrt(2))
  const u32 bits = mr_bits(x);
  const u32 above = bits - 0x3F3504F3u;
  const int e = (int)above >> 23;
  const float f = mr_from_bits(bits - ((u32)e << 23)) - 1.0f;
  exponent = exponent + (float)e;
  const float s = f / (2.0f + f);  // log m = 2 atanh(s)
  const float z = s * s;
  float p = 0.233419433f;
  p = p * z + 0.285503983f;
  p = p * z + 0.400001258f;
  p = p * z + 0.666666687f;
  const float half_square = 0.5f * f * f;
  const float tail = s * (half_square + z * p) + exponent * 3.19461833e-05f;
  return exponent * 0.693115234f + (f - (half_square - tail));
}

MR_FN float mr_log(float x) {
  if (!(x > 0.0f)) return x == 0.0f ? -mr_infinity() : mr_nan();
  if (!mr_isfinite(x)) return x;
  if (x < 1.17549435e-38f) return mr_log_of_normal(x * 33554432.0f, -25.0f);  // subnormal
  return mr_log_of_normal(x, 0.0f);
}

// x folded into [-pi/4, pi/4] and the quadrant it came from.
struct ReducedAngle {
  float r;
  u32 quadrant;
};

// |x| <= 8192; branch-free.
MR_FN ReducedAngle mr_reduce_small_angle(float x) {
  const float shifted = x * 0.636619772f + MR_ROUND_MAGIC;
  const float n = shifted - MR_ROUND_MAGIC;
  ReducedAngle angle;
  // n * pi/2 in four parts; n times each of the first three is exact.
  angle.r = x - n * 1.5703125f;
  angle.r = angle.r - n * 0.000483751297f;
  angle.r = angle.r - n * 7.54953362e-08f;
  angle.r = angle.r - n * 2.56334407e-12f;
  angle.quadrant = mr_bits(shifted) & 3u;
  return angle;
}

MR_FN ReducedAngle mr_reduce_angle(float x) {
  if (!(mr_abs(x) <= 8192.0f)) x = mr_fmod(x, 6.28318531f);
  return mr_reduce_small_angle(x);
}

MR_FN float mr_sin_reduced(float r) {
  const float z = r * r;
  float p = 2.72437819e-06f;
  p = p * z - 0.00019840039f;
  p = p * z + 0.00833333191f;
  p = p * z - 0.166666672f;
  return r + r * z * p;
}

MR_FN float mr_cos_reduced(float r) {
  const float z = r * r;
  float p = -2.72958317e-07f;
  p = p * z + 2.48005599e-05f;
  p = p * z - 0.00138888881f;
  p = p * z + 0.0416666679f;
  return 1.0f - (0.5f * z - z * z * p);
}

MR_FN float mr_sin(float x) {
  const ReducedAngle angle = mr_reduce_angle(x);
  const float value = angle.quadrant & 1u ? mr_cos_reduced(angle.r) : mr_sin_reduced(angle.r);
  return angle.quadrant & 2u ? -value : value;
}

MR_FN float mr_cos_of(ReducedAngle angle) {
  const float value = angle.quadrant & 1u ? mr_sin_reduced(angle.r) : mr_cos_reduced(angle.r);
  return ((angle.quadrant + 1u) & 2u) ? -value : value;
}

MR_FN float mr_cos(float x) { return mr_cos_of(mr_reduce_angle(x)); }

// asin(s) for 0 <= s <= 1/2, with z = s * s.
MR_FN float mr_asin_reduced(float s, float z) {
  float p = 0.0336908475f;
  p = p * z + 0.0171492379f;
  p = p * z + 0.0311006624f;
  p = p * z + 0.0445994027f;
  p = p * z + 0.0750009418f;
  p = p * z + 0.166666657f;
  return s + s * z * p;
}

// Arguments beyond +-1 count as +-1: a dot product of unit vectors may exceed one by rounding.
MR_FN float mr_acos(float x) {
  const float magnitude = mr_abs(x);
  if (magnitude <= 0.5f) {
    // pi/2 in two parts keeps the sum's error at one rounding.
    return 1.57079637f - (mr_asin_reduced(x, x * x) + 4.37113883e-08f);
  }
  const float z = magnitude > 1.0f ? 0.0f : 0.5f * (1.0f - magnitude);
  const float angle = 2.0f * mr_asin_reduced(mr_sqrt(z), z);
  return x < 0.0f ? 3.14159274f - (angle + 8.74227766e-08f) : angle;
}

MR_FN float mr_tanh(float x) {
  const float magnitude = mr_abs(x);
  if (magnitude < 0.625f) {
    const float z = x * x;
    float p = 0.00229274482f;
    p = p * z - 0.00834394526f;
    p = p * z + 0.0217689183f;
    p = p * z - 0.0539592579f;
    p = p * z + 0.133333042f;
    p = p * z - 0.333333343f;
    return x + x * z * p;
  }
  const float value = 1.0f - 2.0f / (mr_exp(2.0f * magnitude) + 1.0f);
  return x < 0.0f ? -value : value;
}

#undef MR_ROUND_MAGIC

}  // namespace millrace

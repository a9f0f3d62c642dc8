// The tensor cores' instructions for the shim: what cuda/tensor_core.cuh promises, between fibres.
// The layout of fragments is the PTX manual's (mma.m16n8k8, mma.m16n8k16, ldmatrix), written down
// once more, from what the manual says of an element and not from what our kernels do.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace millrace {

// To nearest, ties away from zero.
inline unsigned round_to_tf32(float value) {
  constexpr unsigned kDropped = 13, kInfinity = 0x7F800000u, kNone = 0x7FFFFFFFu;
  unsigned bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7FFFFFFFu) > kInfinity) return kNone;
  if ((bits & kInfinity) == kInfinity) return bits;
  return (bits + (1u << (kDropped - 1))) >> kDropped << kDropped;
}

namespace tensor_core {

// What a lane brings to a product.
struct Operands {
  unsigned a[4], b[2];
};

inline float number_of(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline float half_of(unsigned word, unsigned half) {
  return from_bf16(static_cast<uint16_t>(word >> 16 * half));
}

// a[row][k] of m16n8k8: register r is of row lane / 4 + 8 (r % 2), column lane % 4 + 4 (r / 2).
struct Tf32 {
  static constexpr unsigned kDepth = 8;
  static float a(const Operands* lanes, unsigned row, unsigned k) {
    return number_of(lanes[row % 8 * 4 + k % 4].a[row / 8 + k / 4 * 2]);
  }
  static float b(const Operands* lanes, unsigned k, unsigned column) {
    return number_of(lanes[column * 4 + k % 4].b[k / 4]);
  }
};

// a[row][k] of m16n8k16: register r is of row lane / 4 + 8 (r % 2), columns 2 (lane % 4) + 8 (r /
// 2) and the next.
struct Bf16 {
  static constexpr unsigned kDepth = 16;
  static float a(const Operands* lanes, unsigned row, unsigned k) {
    return half_of(lanes[row % 8 * 4 + k % 8 / 2].a[row / 8 + k / 8 * 2], k % 2);
  }
  static float b(const Operands* lanes, unsigned k, unsigned column) {
    return half_of(lanes[column * 4 + k % 8 / 2].b[k / 8], k % 2);
  }
};

template <class Format>
void multiply(float (&c)[4], const Operands& own, const char* what) {
  const auto* const lanes =
      static_cast<const Operands*>(device_shim::exchange(&own, sizeof(own), what));
  const unsigned row = device_shim::lane() / 4, column = device_shim::lane() % 4 * 2;
  for (unsigned k = 0; k < Format::kDepth; ++k) {
    const float a_first = Format::a(lanes, row, k), a_second = Format::a(lanes, row + 8, k);
    const float b_first = Format::b(lanes, k, column), b_second = Format::b(lanes, k, column + 1);
    c[0] += a_first * b_first;
    c[1] += a_first * b_second;
    c[2] += a_second * b_first;
    c[3] += a_second * b_second;
  }
}

}  // namespace tensor_core

inline void multiply_tf32(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  tensor_core::multiply<tensor_core::Tf32>(c, {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}},
                                           "mma.m16n8k8");
}

inline void multiply_bf16(float (&c)[4], const unsigned (&a)[4], unsigned b_low, unsigned b_high) {
  tensor_core::multiply<tensor_core::Bf16>(c, {{a[0], a[1], a[2], a[3]}, {b_low, b_high}},
                                           "mma.m16n8k16");
}

template <bool kTransposed>
void load_matrices(unsigned (&to)[4], const __nv_bfloat16* row) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) device_shim::refuse("a row at no multiple of 16");
  const auto* const rows = static_cast<const __nv_bfloat16* const*>(
      device_shim::exchange(&row, sizeof(row), kTransposed ? "ldmatrix.trans" : "ldmatrix"));
  const int lane = static_cast<int>(device_shim::lane());
  for (int matrix = 0; matrix < 4; ++matrix) {
    __nv_bfloat16 halves[2];
    for (int i = 0; i < 2; ++i) {
      const int outer = lane / 4, inner = lane % 4 * 2 + i;
      halves[i] = kTransposed ? rows[matrix * 8 + inner][outer] : rows[matrix * 8 + outer][inner];
    }
    std::memcpy(&to[matrix], halves, sizeof(halves));
  }
}

}  // namespace millrace

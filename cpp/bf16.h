// bf16 on the host: the upper half of a float's bits, rounded to the nearest even one.
#pragma once

#include <cstdint>
#include <cstring>

namespace millrace {

inline uint16_t to_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  if (is_nan) return static_cast<uint16_t>(bits >> 16 | 0x40u);  // rounding could make it infinite
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

inline float from_bf16(uint16_t stored) {
  const uint32_t bits = static_cast<uint32_t>(stored) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace millrace

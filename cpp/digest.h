// FNV-1a, 64 bits: names what two runs have in common. Not for secrets.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace millrace {

// Goes on from `digest`, so that parts can be added one by one.
inline uint64_t digest_of(const std::string& bytes, uint64_t digest = 0xCBF29CE484222325ull) {
  for (const char byte : bytes) {
    digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001B3ull;
  }
  return digest;
}

// Java has no unsigned 64-bit numbers.
inline std::string hexadecimal(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace millrace

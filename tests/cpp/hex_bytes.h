// Bytes written as hexadecimal digits in a test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

inline std::vector<uint8_t> from_hex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

}  // namespace millrace

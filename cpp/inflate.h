// Inflate: the DEFLATE format (RFC 1951), for the arrays that numpy's savez_compressed writes.
// The input is a user's file, so every read is checked. Stateless; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace {

// Exactly `out_bytes` bytes from a whole stream. Throws Failure(kInvalid) for a stream that is
// damaged, too short or holds another number of bytes.
std::vector<uint8_t> inflate(const uint8_t* data, size_t bytes, size_t out_bytes);

}  // namespace millrace

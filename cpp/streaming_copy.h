// Writing rows that the processor will not read again, only a device's copy engine: past the
// caches. A device copies lines that lie modified in a core's cache more slowly (docs/adr/0009). On
// processors without such stores these are plain copies.
//
// The stores become visible to other threads and devices in order only after streaming_fence(), on
// the thread that wrote.
#pragma once

#include <cstddef>

namespace millrace {

// Any alignment; no overlap.
void streaming_copy(float* to, const float* from, size_t count);
void streaming_fence();

}  // namespace millrace

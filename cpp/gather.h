// Which rows a batch holds: a pure function of (seed, tick, low, high). Freestanding: the gather of
// every backend is a loop over gather_row().
#pragma once

#include "philox.h"
#include "portable.h"

namespace millrace {

// Rows are absolute indices; `ring` holds row r at r mod capacity_rows.
struct Gather {
  float* batch;       // count rows of row_stride floats
  const float* ring;  // capacity_rows rows of row_stride floats
  u64 capacity_rows;
  u64 row_stride;  // floats
  u64 count;
  u64 seed;
  u64 tick;
  u64 low;   // first row of the range
  u64 high;  // one past the last; high - low < 2^32
};

// The absolute row of sample i: uniform with replacement over [low, high).
MR_FN u64 gather_row(const Gather& gather, u64 i) {
  const RandomSource source = random_source(gather.seed, kStreamSampler, 0u, gather.tick);
  return gather.low + random_index(source, (u32)i, (u32)(gather.high - gather.low));
}

}  // namespace millrace

// Which rows a batch holds: a pure function of (seed, tick, low, high); and in which order of
// columns. Freestanding: the gather of every backend is a loop over gather_row().
#pragma once

#include "philox.h"
#include "portable.h"

namespace millrace {

// Columns [from, from + count) of a row of the ring become [to, to + count) of a row of the batch.
struct ColumnSegment {
  u32 from, to, count;
};

MR_CONSTEXPR u32 kMaxColumnSegments = 8;

// Segments in the order of `to`, without gaps. None: the row is copied whole.
struct BatchColumns {
  u32 stride;  // floats from row to row of the batch
  u32 segment_count;
  ColumnSegment segments[kMaxColumnSegments];

  MR_FN u32 width() const {
    return segment_count == 0 ? stride
                              : segments[segment_count - 1].to + segments[segment_count - 1].count;
  }
};

// Rows are absolute indices; `ring` holds row r at r mod capacity_rows.
struct Gather {
  MR_DEVICE float* batch;       // count rows of columns.stride floats
  MR_DEVICE const float* ring;  // capacity_rows rows of row_stride floats
  u64 capacity_rows;
  u64 row_stride;  // floats
  u64 count;
  u64 seed;
  u64 tick;
  u64 low;   // first row of the range
  u64 high;  // one past the last; high - low < 2^32
  BatchColumns columns;
};

// The absolute row of sample i: uniform with replacement over [low, high).
MR_FN u64 gather_row(MR_THREAD const Gather& gather, u64 i) {
  const RandomSource source = random_source(gather.seed, kStreamSampler, 0u, gather.tick);
  return gather.low + random_index(source, (u32)i, (u32)(gather.high - gather.low));
}

}  // namespace millrace

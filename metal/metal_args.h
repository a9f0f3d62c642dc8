// What the kernels of this folder take: one struct each, bound at index 0. One source for the Metal
// compiler, which sees typed pointers of the device, and for the host, which fills them with the
// addresses that it got from the table (backend.h): 8 bytes either way. Freestanding C++14; names
// are those of the kernels, with Args.
//
// Sizes and strides count elements of what the pointer leads to, unless they say bytes.
#pragma once

#include "gather.h"
#include "portable.h"
#include "update_launch.h"

namespace millrace {

// Threads of a simdgroup; every kernel relies on it.
MR_CONSTEXPR u32 kSimdWidth = 32;

// ---- gather.metal ----

MR_CONSTEXPR u32 kGatherThreads = 128;  // of a threadgroup; one simdgroup moves one row

struct GatherArgs {
  Gather gather;
};

// ---- copy.metal ----

MR_CONSTEXPR u32 kCopyThreads = 256;  // of a threadgroup; each moves one piece

// `rows` rows of row_pieces pieces, a piece being 16, 4 or 1 bytes as the kernel's name says.
struct CopyRowsArgs {
  MR_DEVICE void* to;
  MR_DEVICE const void* from;
  u64 to_pitch, from_pitch;  // pieces from row to row
  u64 row_pieces, rows;
};

// ---- update.metal ----

MR_CONSTEXPR u32 kUpdateThreads = 128;  // of a threadgroup; one simdgroup per environment

struct UpdateArgs {
  UpdateLaunch launch;
};

}  // namespace millrace

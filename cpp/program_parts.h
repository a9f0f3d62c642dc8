// Parts of ops (program.h) that kernels take as they are. Freestanding.
#pragma once

#include "portable.h"

namespace millrace {

// Rows that stand one behind the other in a vector of parameters.
struct RowBlock {
  u64 first;
  int rows, width;
  float length;  // that each of them gets; 0: they stay as they are
};

// Of one UnpackOp.
MR_CONSTEXPR int kMaxUnpackParts = 8;

// How a scalar of one update joins the totals of an interval.
enum class Fold { kSum, kMax, kMin };

}  // namespace millrace

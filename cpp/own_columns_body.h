// A lane's share of a row, kept in variables of its own while the team works on the row: at most
// kOwn columns, kVector of them side by side: lane * kVector and the next ones, then those a team's
// width further on. Freestanding.
#pragma once

#include "team.h"

namespace millrace {

// Calls visit(own, column) for each column of the lane. The trip count is constant and the loop
// unrolled, so that arrays indexed by `own` are registers, and reads of a row are all under way
// before the first is waited for; more than 32 columns would not be registers anyway.
template <int kOwn, int kVector = 1, class Team, class Visit>
MR_LOOP_FN void each_own_column(const Team& team, int width, const Visit& visit) {
#if defined(__CUDA_ARCH__)
#pragma unroll(kOwn <= 32 ? kOwn : 1)
#endif
  for (int own = 0; own < kOwn; ++own) {
    const int column = (own / kVector * team.size() + team.lane()) * kVector + own % kVector;
    if (column < width) visit(own, column);
  }
}

template <int kOwn, int kVector = 1, class Stored, class Team>
MR_LOOP_FN void read_own_columns(const Team& team, const Stored* row, int width,
                                 float (&own)[kOwn]) {
  each_own_column<kOwn, kVector>(
      team, width, [&](int at, int column) { own[at] = static_cast<float>(row[column]); });
}

}  // namespace millrace

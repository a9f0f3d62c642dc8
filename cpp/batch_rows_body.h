// One row of an unpacked batch (program.h, UnpackOp), as a team of lanes computes it. Freestanding.
#pragma once

#include "team.h"

namespace millrace {

// What is the same for all rows; `source` and `sign` only with mirrored rows, `mean` and `scale`
// only with a normaliser.
struct UnpackMaps {
  const int* source;
  const float* sign;
  const float* mean;
  const float* scale;
};

// `row` begins at the op's first column.
template <class Team>
MR_FN void unpack_row(const Team& team, const float* row, bool is_mirrored, const UnpackMaps& maps,
                      float* target, int width) {
  for (int i = team.lane(); i < width; i += team.size()) {
    const float x = is_mirrored ? maps.sign[i] * row[maps.source[i]] : row[i];
    target[i] = maps.mean ? (x - maps.mean[i]) * maps.scale[i] : x;
  }
}

}  // namespace millrace

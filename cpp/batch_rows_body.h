// One row of an unpacked batch (program.h, UnpackOp), as a team of lanes computes it. Freestanding.
#pragma once

#include "own_columns_body.h"

namespace millrace {

// What is the same for all rows; `source` and `sign` only with mirrored rows, `mean` and `scale`
// only with a normaliser.
struct UnpackMaps {
  const int* source;
  const float* sign;
  const float* mean;
  const float* scale;
};

// `row` begins at the op's first column. A lane's reads are under way together, four at a time.
template <class Stored, class Team>
MR_FN void unpack_row(const Team& team, const float* row, bool is_mirrored, const UnpackMaps& maps,
                      Stored* target, int width) {
  for (int first = 0; first < width; first += 4 * team.size()) {
    float x[4];
    each_own_column<4>(team, width - first, [&](int own, int column) {
      const int i = first + column;
      x[own] = is_mirrored ? maps.sign[i] * row[maps.source[i]] : row[i];
    });
    each_own_column<4>(team, width - first, [&](int own, int column) {
      const int i = first + column;
      const float value = maps.mean ? (x[own] - maps.mean[i]) * maps.scale[i] : x[own];
      target[i] = static_cast<Stored>(value);
    });
  }
}

}  // namespace millrace

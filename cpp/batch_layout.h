// BatchLayout: the order of columns in a gathered batch. The gather writes it, so that a learner's
// first product can read its inputs as one block:
//   row     as in the ring: obs | next_obs | action | reward | done | truncated | critic |
//   next_critic sac     obs | critic | action | reward | next_obs | next_critic | done | truncated
//   critic  critic | action | reward | next_obs | next_critic | done | truncated
// In `sac` and `critic` the inputs of the critic (critic, action) and those of the next step
// (next_obs, next_critic) are neighbours. Rows of a batch are padded to 16 bytes; the padding of a
// reordered batch is not written.
#pragma once

#include <string>

#include "gather.h"
#include "layout.h"

namespace millrace {

enum class BatchLayout { kRow, kSac, kCritic };

// Throws Failure(kInvalid) for an unknown name.
BatchLayout batch_layout(const std::string& name);
const char* to_string(BatchLayout layout);

// Where the parts of a row stand in a batch; -1: not there.
struct BatchOffsets {
  int observation, critic, action, reward, next_observation, next_critic, done, truncated;
  int width;
  int stride() const { return (width + 3) / 4 * 4; }
};
BatchOffsets batch_offsets(const RowLayout& row, BatchLayout layout);

// The same for the gather; no segments for kRow: rows are copied whole, padding included.
BatchColumns batch_columns(const RowLayout& row, BatchLayout layout);

}  // namespace millrace

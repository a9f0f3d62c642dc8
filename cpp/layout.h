// The packed replay row: float32, in this order:
//   obs | next_obs | action | reward | done | truncated | critic | next_critic
// width = 2 obs + action + 3 + 2 critic. Host slots have the logical width; device rows are padded
// to 16 bytes. done = terminated or truncated; a row that is both is terminated (truncated = 0);
// bootstrap = clamp(1 - done + truncated, 0, 1).
#pragma once

#include <cstddef>

namespace millrace {

struct RowLayout {
  int observation_dim;
  int action_dim;
  int critic_dim;

  int observation() const { return 0; }
  int next_observation() const { return observation_dim; }
  int action() const { return 2 * observation_dim; }
  int reward() const { return action() + action_dim; }
  int done() const { return reward() + 1; }
  int truncated() const { return reward() + 2; }
  int critic() const { return reward() + 3; }
  int next_critic() const { return critic() + critic_dim; }
  int width() const { return next_critic() + critic_dim; }
  size_t row_bytes() const { return static_cast<size_t>(width()) * sizeof(float); }
  size_t row_stride_bytes() const { return (row_bytes() + 15) / 16 * 16; }
  int row_stride() const { return static_cast<int>(row_stride_bytes() / sizeof(float)); }
};

}  // namespace millrace

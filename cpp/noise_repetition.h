// NoiseRepetition: exploration that keeps one draw of noise per environment for k ticks, k from the
// Zeta(2) distribution cut off at `longest` (P(k) ~ 1 / k^2); a reset draws anew. It says of which
// tick each environment's draw is; the policy draws it from there. How long a draw is kept is drawn
// from the same place, behind the normals of any action. Owner: the collector's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "state_registry.h"

namespace millrace {

class NoiseRepetition {
 public:
  NoiseRepetition(int num_envs, int longest, uint64_t seed);

  // Before acting in `tick`: environments whose draw has been kept long enough take that tick's.
  void advance(uint64_t tick);
  const uint64_t* drawn_at() const { return drawn_at_.data(); }
  // After a reset: those with a mask that is not 0 draw anew at the next tick.
  void restart(const uint8_t* mask);

  // For how many ticks the draw of `tick` is kept.
  int length(uint32_t environment, uint64_t tick) const;

  // exploration/{drawn_at, kept_until}
  void register_state(StateRegistry& registry);

 private:
  uint64_t seed_;
  std::vector<float> cumulative_;  // of k = 1, 2, …
  std::vector<uint64_t> drawn_at_;
  std::vector<uint64_t> kept_until_;  // the first tick with another draw
};

}  // namespace millrace

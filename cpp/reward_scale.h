// RewardScale: what rewards are multiplied by so that returns fit the support of the critics,
//   1 / max(sqrt(variance of G + 1e-8), largest |G| so far / largest value of the support)
// G is each environment's discounted sum of past rewards, tick by tick as rows are packed:
//   episode:   G <- gamma G + r, counted, then cleared where the row is done
//   flashsac:  G <- gamma (1 - done) G + r, counted: as FlashSAC was published, a terminal reward
//              then begins the next episode's sum
// Statistics start at mean 0, variance 1, count 1e-4 and merge tick by tick (Chan); the largest |G|
// never falls. A reward that is not finite is left out: the update that meets it reports it.
//
// It reads what the update step leaves on the host, wherever that runs, so that no row has to come
// back from a device. Owner: the collector's thread; factor() may be called by any.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "learner.h"
#include "state.h"

namespace millrace {

class RewardScale {
 public:
  RewardScale(const LearnerSpec& spec, int num_envs);

  // Reward and done of the tick, before any reset.
  void absorb(const StateView& state);

  float factor() const { return factor_.load(std::memory_order_relaxed); }
  const std::vector<double>& returns() const { return returns_; }

  // reward_scale/{return, mean, var, count, largest}
  void register_state(StateRegistry& registry);
  void state_restored() { find_factor(); }

 private:
  void merge(double mean, double squares, double count);
  void find_factor();

  const bool clears_before_;
  const double gamma_, support_;
  std::vector<double> returns_, counted_;
  double mean_ = 0, variance_ = 1, count_ = 1e-4, largest_ = 0;
  std::atomic<float> factor_{1.0f};
};

}  // namespace millrace

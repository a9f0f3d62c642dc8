// RewardScale: what rewards are multiplied by so that returns fit the support of the critics,
//   1 / max(sqrt(variance of G + 1e-8), largest |G| so far / support)
// G is each environment's discounted sum of past rewards, over committed rows in order:
//   episode:   G <- gamma G + r, counted, then cleared where the row is done
//   flashsac:  G <- gamma (1 - done) G + r, counted: as FlashSAC was published, a terminal reward
//              then begins the next episode's sum
// Statistics start at mean 0, variance 1, count 1e-4 and merge tick by tick (Chan); the largest |G|
// never falls. A reward that is not finite is left out: the update that meets it reports it.
// Owner: the learner's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "learner.h"

namespace millrace {

class RewardScale {
 public:
  // `support`: the largest value that the critics can express.
  RewardScale(RewardScaling scaling, int num_envs, float gamma, float support);

  // `count` rows, a multiple of num_envs; row i of each tick is environment i's.
  void absorb(const float* rows, uint64_t count, int row_stride, const RowLayout& layout);

  // 1 when scaling is off.
  float factor() const;
  const std::vector<double>& returns() const { return returns_; }

  // reward_scale/{return, mean, var, count, largest}; nothing when scaling is off.
  void register_state(StateRegistry& registry);

 private:
  void merge(double mean, double squares, double count);

  RewardScaling scaling_;
  double gamma_, support_;
  std::vector<double> returns_;
  double mean_ = 0, variance_ = 1, count_ = 1e-4, largest_ = 0;
};

}  // namespace millrace

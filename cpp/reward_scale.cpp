#include "reward_scale.h"

#include <algorithm>
#include <cmath>

namespace millrace {

RewardScale::RewardScale(const LearnerSpec& spec, int num_envs)
    : clears_before_(spec.reward_scaling == RewardScaling::kFlashSac),
      gamma_(spec.gamma),
      support_(std::max(std::abs(spec.v_min), std::abs(spec.v_max))),
      returns_(static_cast<size_t>(num_envs), 0.0) {
  find_factor();
}

void RewardScale::absorb(const StateView& state) {
  counted_.clear();
  for (size_t i = 0; i < returns_.size(); ++i) {
    const int env = static_cast<int>(i);
    const double reward = component(state.episode[kReward], env, 0);
    const bool is_done = counter_of(state.counter[kDone], env) != 0;
    double& sum = returns_[i];
    if (std::isfinite(reward)) {
      sum = (clears_before_ && is_done ? 0.0 : gamma_ * sum) + reward;
      counted_.push_back(sum);
      largest_ = std::max(largest_, std::abs(sum));
    }
    if (!clears_before_ && is_done) sum = 0.0;
  }
  if (counted_.empty()) return;
  const double count = static_cast<double>(counted_.size());
  double mean = 0, squares = 0;
  for (const double value : counted_) mean += value / count;
  for (const double value : counted_) squares += (value - mean) * (value - mean);
  merge(mean, squares, count);
  find_factor();
}

// `squares`: of the distances from the batch's own mean.
void RewardScale::merge(double mean, double squares, double count) {
  const double total = count_ + count;
  const double delta = mean - mean_;
  const double all = variance_ * count_ + squares + delta * delta * count_ * count / total;
  mean_ += delta * count / total;
  variance_ = all / total;
  count_ = total;
}

void RewardScale::find_factor() {
  const double scale = std::max(std::sqrt(variance_ + 1e-8), largest_ / support_);
  factor_.store(static_cast<float>(1.0 / scale), std::memory_order_relaxed);
}

void RewardScale::register_state(StateRegistry& registry) {
  registry.add("reward_scale/return", DType::kF64, {static_cast<int64_t>(returns_.size())},
               returns_.data());
  registry.add("reward_scale/mean", DType::kF64, {1}, &mean_);
  registry.add("reward_scale/var", DType::kF64, {1}, &variance_);
  registry.add("reward_scale/count", DType::kF64, {1}, &count_);
  registry.add("reward_scale/largest", DType::kF64, {1}, &largest_);
}

}  // namespace millrace

#include "reward_scale.h"

#include <algorithm>
#include <cmath>

namespace millrace {

RewardScale::RewardScale(RewardScaling scaling, int num_envs, float gamma, float support)
    : scaling_(scaling),
      gamma_(gamma),
      support_(support),
      returns_(scaling == RewardScaling::kOff ? 0 : static_cast<size_t>(num_envs), 0.0) {}

void RewardScale::absorb(const float* rows, uint64_t count, int row_stride,
                         const RowLayout& layout) {
  if (scaling_ == RewardScaling::kOff) return;
  MR_CHECK(count % returns_.size() == 0, "returns are followed for whole ticks");
  const bool clears_before = scaling_ == RewardScaling::kFlashSac;
  std::vector<double> counted;
  for (uint64_t first = 0; first < count; first += returns_.size()) {
    counted.clear();
    for (size_t i = 0; i < returns_.size(); ++i) {
      const float* row = rows + (first + i) * static_cast<uint64_t>(row_stride);
      const bool is_done = row[layout.done()] != 0.0f;
      const double reward = row[layout.reward()];
      double& sum = returns_[i];
      if (std::isfinite(reward)) {
        sum = (clears_before && is_done ? 0.0 : gamma_ * sum) + reward;
        counted.push_back(sum);
        largest_ = std::max(largest_, std::abs(sum));
      }
      if (!clears_before && is_done) sum = 0.0;
    }
    if (counted.empty()) continue;
    double mean = 0, squares = 0;
    for (const double value : counted) mean += value / static_cast<double>(counted.size());
    for (const double value : counted) squares += (value - mean) * (value - mean);
    merge(mean, squares, static_cast<double>(counted.size()));
  }
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

float RewardScale::factor() const {
  if (scaling_ == RewardScaling::kOff) return 1.0f;
  return static_cast<float>(1.0 / std::max(std::sqrt(variance_ + 1e-8), largest_ / support_));
}

void RewardScale::register_state(StateRegistry& registry) {
  if (scaling_ == RewardScaling::kOff) return;
  registry.add("reward_scale/return", DType::kF64, {static_cast<int64_t>(returns_.size())},
               returns_.data());
  registry.add("reward_scale/mean", DType::kF64, {1}, &mean_);
  registry.add("reward_scale/var", DType::kF64, {1}, &variance_);
  registry.add("reward_scale/count", DType::kF64, {1}, &count_);
  registry.add("reward_scale/largest", DType::kF64, {1}, &largest_);
}

}  // namespace millrace

#include "normalizer.h"

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

constexpr double kDeviationFloor = 1e-2;

}  // namespace

Normalizer::Normalizer(int columns)
    : mean_(columns, 0.0), variance_(columns, 1.0), batch_mean_(columns), batch_squares_(columns) {}

void Normalizer::absorb(const float* rows, uint64_t count, int stride) {
  if (count == 0) return;
  const size_t columns = mean_.size();
  const double batch = static_cast<double>(count);
  std::fill(batch_mean_.begin(), batch_mean_.end(), 0.0);
  std::fill(batch_squares_.begin(), batch_squares_.end(), 0.0);
  for (uint64_t r = 0; r < count; ++r) {
    const float* row = rows + r * stride;
    for (size_t i = 0; i < columns; ++i) batch_mean_[i] += row[i];
  }
  for (double& mean : batch_mean_) mean /= batch;
  for (uint64_t r = 0; r < count; ++r) {
    const float* row = rows + r * stride;
    for (size_t i = 0; i < columns; ++i) {
      const double distance = row[i] - batch_mean_[i];
      batch_squares_[i] += distance * distance;
    }
  }
  const double before = static_cast<double>(count_);
  const double total = before + batch;
  for (size_t i = 0; i < columns; ++i) {
    const double delta = batch_mean_[i] - mean_[i];
    const double squares =
        variance_[i] * before + batch_squares_[i] + delta * delta * before * batch / total;
    mean_[i] += delta * batch / total;
    variance_[i] = squares / total;
  }
  count_ += count;
}

void Normalizer::write(float* mean, float* scale) const {
  for (size_t i = 0; i < mean_.size(); ++i) {
    mean[i] = static_cast<float>(mean_[i]);
    scale[i] = static_cast<float>(1.0 / (std::sqrt(variance_[i]) + kDeviationFloor));
  }
}

void Normalizer::register_state(StateRegistry& registry, const std::string& name) {
  const std::vector<int64_t> shape = {static_cast<int64_t>(mean_.size())};
  registry.add(name + "/mean", DType::kF64, shape, mean_.data());
  registry.add(name + "/var", DType::kF64, shape, variance_.data());
  registry.add(name + "/count", DType::kU64, {1}, &count_);
}

}  // namespace millrace

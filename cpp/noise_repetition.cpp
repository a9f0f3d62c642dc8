#include "noise_repetition.h"

#include "philox.h"

namespace millrace {
namespace {

constexpr u32 kLengthDraw = 0xFFFFFFF0u;  // far behind the normals

}  // namespace

NoiseRepetition::NoiseRepetition(int num_envs, int longest, uint64_t seed)
    : seed_(seed),
      drawn_at_(static_cast<size_t>(num_envs), 0),
      kept_until_(static_cast<size_t>(num_envs), 0) {
  MR_CHECK(longest >= 1, "a draw is kept for a tick at least");
  double sum = 0, total = 0;
  for (int k = 1; k <= longest; ++k) total += 1.0 / (static_cast<double>(k) * k);
  for (int k = 1; k <= longest; ++k) {
    sum += 1.0 / (static_cast<double>(k) * k);
    cumulative_.push_back(static_cast<float>(sum / total));
  }
}

int NoiseRepetition::length(uint32_t environment, uint64_t tick) const {
  const RandomSource source = random_source(seed_, kStreamExploration, environment, tick);
  const float u = unit_float(random_u32(source, kLengthDraw));
  size_t k = 0;
  while (k + 1 < cumulative_.size() && u >= cumulative_[k]) ++k;
  return static_cast<int>(k) + 1;
}

void NoiseRepetition::advance(uint64_t tick) {
  for (size_t i = 0; i < drawn_at_.size(); ++i) {
    if (tick < kept_until_[i]) continue;
    drawn_at_[i] = tick;
    kept_until_[i] = tick + static_cast<uint64_t>(length(static_cast<uint32_t>(i), tick));
  }
}

void NoiseRepetition::restart(const uint8_t* mask) {
  for (size_t i = 0; i < kept_until_.size(); ++i) {
    if (mask[i] != 0) kept_until_[i] = 0;
  }
}

void NoiseRepetition::register_state(StateRegistry& registry) {
  const std::vector<int64_t> shape = {static_cast<int64_t>(drawn_at_.size())};
  registry.add("exploration/drawn_at", DType::kU64, shape, drawn_at_.data());
  registry.add("exploration/kept_until", DType::kU64, shape, kept_until_.data());
}

}  // namespace millrace

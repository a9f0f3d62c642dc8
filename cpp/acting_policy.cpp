#include "acting_policy.h"

#include <algorithm>
#include <utility>

namespace millrace {

HostPolicy::HostPolicy(PolicyShape shape, int num_envs, uint64_t seed, std::string reason)
    : num_envs_(num_envs),
      seed_(seed),
      reason_(std::move(reason)),
      policy_(shape, num_envs),
      snapshot_(policy_.parameter_count()) {}

uint64_t HostPolicy::bytes_needed(PolicyShape shape, int num_envs) {
  const PolicyPrograms programs(shape, num_envs);
  return programs.workspace.bytes() + programs.parameter_count * sizeof(float);
}

void HostPolicy::publish(const float* parameters) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::copy(parameters, parameters + snapshot_.size(), snapshot_.begin());
  snapshot_is_new_ = true;
}

void HostPolicy::take_snapshot() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!snapshot_is_new_) return;
  policy_.load(snapshot_.data());
  snapshot_is_new_ = false;
}

void HostPolicy::act(const Observations& observations, const Draws& draws, float* actions) {
  take_snapshot();
  policy_.act_exploring(observations.on_host, num_envs_, seed_, draws.tick, actions,
                        draws.drawn_at);
}

nlohmann::json HostPolicy::facts() const {
  return {{"place", "host"}, {"precision", "fp32"}, {"reason", reason_}};
}

}  // namespace millrace

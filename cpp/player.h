// Player: a session that plays a policy: as many environments as episodes, each for one episode
// from its reset, with the deterministic policy. No learner, no replay; its checkpoint tensors are
// the policy's alone. It acts on the CPU whatever device the configuration names, and its facts say
// so. One thread.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "policy.h"
#include "session.h"
#include "sim_parts.h"

namespace millrace {

class Player : public Session {
 public:
  // `config` has play{episodes}; noise and events are as its env section says.
  explicit Player(const nlohmann::json& config);

  nlohmann::json facts() const override;
  // {tick, finished, stopped, episodes: [{environment, return, length, reason}]}: the episodes that
  // ended in this call.
  nlohmann::json advance(uint64_t ticks) override;
  void stop() override { stop_requested_.store(true, std::memory_order_relaxed); }
  const StateRegistry& registry() const override { return registry_; }
  void restored(bool with_replay) override;
  const FirstError& first_error() const override { return error_; }

 private:
  void tick();

  FirstError error_;
  const std::string device_;  // that the configuration names
  const int episodes_;
  SimParts sim_;
  Policy policy_;
  StateRegistry registry_;
  std::vector<float> rows_;
  std::vector<uint8_t> has_ended_;
  int ended_count_ = 0;
  nlohmann::json ended_ = nlohmann::json::array();
  uint64_t tick_ = 0;
  bool has_policy_ = false;
  std::atomic<bool> stop_requested_{false};
};

}  // namespace millrace

// ActingPolicy: what the collector acts with: a snapshot of the learner's policy (ADR 0007), where
// the learner's programs run, or on the host where the collector may not submit. HostPolicy is the
// CPU's; DevicePolicy (device_policy.h) a device's.
//
// Threads: publish() on the learner's, act() and finish() on the collector's, facts() on any. An
// act() begins with the snapshot that was published last and never sees a later one; without one,
// all weights are zero.
#pragma once

#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "learner.h"
#include "policy.h"

namespace millrace {

// num_envs x observation_dim, twice.
struct Observations {
  const float* on_host;
  const float* on_device;  // null where the device does not have the host's
};

// Which draws exploration takes: those of the tick, or of a tick for each robot.
struct Draws {
  uint64_t tick;
  const uint64_t* drawn_at = nullptr;  // [robot]; null: the tick
};

class ActingPolicy {
 public:
  virtual ~ActingPolicy() = default;

  // Takes a copy of the learner's policy, and returns once that and every update before it is
  // complete.
  virtual void publish(Learner& learner) = 0;
  // Fills actions, num_envs x action_dim, in host memory, exploring.
  virtual void act(const Observations& observations, const Draws& draws, float* actions) = 0;
  // After the last act().
  virtual void finish() = 0;

  // {place, precision, reason} and on a device {copied_bytes_per_tick}; of the manifest.
  virtual nlohmann::json facts() const = 0;
  // CapturedProgram::describe() of the program "policy"; null on the host.
  virtual nlohmann::json graph_facts() const = 0;
};

class HostPolicy final : public ActingPolicy {
 public:
  static constexpr const char* kFollowsLearner =
      "it acts where the learner's programs run: on the host";

  // `reason`: why it acts here; of the manifest.
  HostPolicy(PolicyShape shape, int num_envs, uint64_t seed, std::string reason = kFollowsLearner);

  // What an instance will allocate, without allocating it.
  static uint64_t bytes_needed(PolicyShape shape, int num_envs);

  void publish(Learner& learner) override { publish(learner.policy_parameters()); }
  void publish(const float* parameters);
  void act(const Observations& observations, const Draws& draws, float* actions) override;
  void finish() override {}
  nlohmann::json facts() const override;
  nlohmann::json graph_facts() const override { return nullptr; }
  size_t parameter_count() const { return policy_.parameter_count(); }

 private:
  void take_snapshot();

  const int num_envs_;
  const uint64_t seed_;
  const std::string reason_;
  Policy policy_;
  std::mutex mutex_;
  std::vector<float> snapshot_;  // guarded by mutex_
  bool snapshot_is_new_ = false;
};

}  // namespace millrace

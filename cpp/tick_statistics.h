// What happened in the environments: ended episodes, reward terms, command error, bad ticks.
// Collected once per tick in environment order on the collector's thread, so that the numbers do
// not depend on threads; part of the checkpoint, so that a resumed run reports the same ones.
// Desynchronised first episodes are left out of everything about episodes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "state_registry.h"
#include "update_body.h"

namespace millrace {

struct EpisodeRecord {
  int environment;
  float episode_return;
  int length;  // ticks lived
  int reason;  // index into the task's terminations + 1
};

class TickStatistics {
 public:
  TickStatistics(std::vector<std::string> rewards, std::vector<std::string> terminations);

  // Reads the episode and counter fields as the update step left them, before any reset.
  void add(uint64_t tick, const StateView& state, const UpdateOutcome* outcomes, int num_envs);

  // The episodes that ended in the last tick, in environment order.
  const std::vector<EpisodeRecord>& ended() const { return ended_; }
  double mean_length_ended() const;

  // Means over the ticks since the last call (episodes: also over the last 100 ended):
  //   return_mean, episode_length_mean (last 100), episodes, episodes_ended, ended_length_mean,
  //   ended_return_mean, reward/<term>, end/<reason>, command_error, unstable, non_finite
  // A mean over nothing is absent.
  nlohmann::json take();

  uint64_t unstable_count() const { return unstable_; }
  uint64_t non_finite_count() const { return non_finite_; }
  // Of the whole run, by (tick, environment).
  Verdict first_bad() const { return first_bad_; }
  // As a sentence; empty when nothing was bad.
  std::string describe_first_bad() const;
  void register_state(StateRegistry& registry);

 private:
  void add_bad(uint64_t tick, int environment, const UpdateOutcome& outcome);
  void add_ended(const StateView& state, int environment);

  static constexpr int kRecent = 100;
  std::vector<std::string> reward_names_, termination_names_;
  std::vector<EpisodeRecord> ended_;
  // Since the last take().
  uint64_t ticks_ = 0;
  std::vector<double> reward_sums_;
  double command_error_sum_ = 0;
  std::vector<uint64_t> end_counts_;
  double return_sum_ = 0;
  double length_sum_ = 0;
  // Since the run began.
  uint64_t episodes_ = 0;
  uint64_t unstable_ = 0;
  uint64_t non_finite_ = 0;
  Verdict first_bad_ = verdict_of(kVerdictGood, 0, 0, 0);
  std::vector<float> recent_returns_;  // episode n stands at n mod 100
  std::vector<int32_t> recent_lengths_;
};

}  // namespace millrace

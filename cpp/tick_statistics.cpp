#include "tick_statistics.h"

#include <algorithm>
#include <numeric>

namespace millrace {

TickStatistics::TickStatistics(std::vector<std::string> rewards,
                               std::vector<std::string> terminations)
    : reward_names_(std::move(rewards)),
      termination_names_(std::move(terminations)),
      reward_sums_(reward_names_.size(), 0.0),
      end_counts_(termination_names_.size(), 0),
      recent_returns_(kRecent, 0.0f),
      recent_lengths_(kRecent, 0) {}

void TickStatistics::add(uint64_t tick, const StateView& state, const UpdateOutcome* outcomes,
                         int num_envs) {
  ended_.clear();
  ticks_ += 1;
  const size_t terms = reward_sums_.size();
  std::vector<double> rewards(terms, 0.0);
  double command_error = 0;
  for (int env = 0; env < num_envs; ++env) {
    for (size_t k = 0; k < terms; ++k) {
      rewards[k] += component(state.episode[kTermReward], env, static_cast<int>(k));
    }
    command_error += outcomes[env].command_error;
    if (outcomes[env].kind != kVerdictGood) add_bad(tick, env, outcomes[env]);
    if (counter_of(state.counter[kDone], env)) add_ended(state, env);
  }
  for (size_t k = 0; k < terms; ++k) reward_sums_[k] += rewards[k] / num_envs;
  command_error_sum_ += command_error / num_envs;
}

void TickStatistics::add_bad(uint64_t tick, int environment, const UpdateOutcome& outcome) {
  (outcome.kind == kVerdictPhysics ? unstable_ : non_finite_) += 1;
  const auto kind = static_cast<VerdictKind>(outcome.kind);
  first_bad_ = verdict_merge(first_bad_, verdict_of(kind, tick, static_cast<u32>(environment),
                                                    static_cast<u32>(outcome.term)));
}

void TickStatistics::add_ended(const StateView& state, int environment) {
  if (counter_of(state.counter[kDesynchronised], environment)) return;
  const EpisodeRecord record = {environment, component(state.episode[kReturn], environment, 0),
                                counter_of(state.counter[kTicksLived], environment),
                                counter_of(state.counter[kEndReason], environment)};
  ended_.push_back(record);
  recent_returns_[episodes_ % kRecent] = record.episode_return;
  recent_lengths_[episodes_ % kRecent] = record.length;
  episodes_ += 1;
  return_sum_ += record.episode_return;
  length_sum_ += record.length;
  end_counts_[static_cast<size_t>(record.reason) - 1] += 1;
}

double TickStatistics::mean_length_ended() const {
  double sum = 0;
  for (const EpisodeRecord& record : ended_) sum += record.length;
  return ended_.empty() ? 0 : sum / static_cast<double>(ended_.size());
}

nlohmann::json TickStatistics::take() {
  nlohmann::json report = nlohmann::json::object();
  const auto recent = static_cast<int>(std::min<uint64_t>(episodes_, kRecent));
  if (recent > 0) {
    report["return_mean"] =
        std::accumulate(recent_returns_.begin(), recent_returns_.begin() + recent, 0.0) / recent;
    report["episode_length_mean"] =
        std::accumulate(recent_lengths_.begin(), recent_lengths_.begin() + recent, 0.0) / recent;
  }
  const uint64_t ended = std::accumulate(end_counts_.begin(), end_counts_.end(), uint64_t{0});
  report["episodes"] = episodes_;
  report["episodes_ended"] = ended;
  if (ended > 0) {
    report["ended_return_mean"] = return_sum_ / static_cast<double>(ended);
    report["ended_length_mean"] = length_sum_ / static_cast<double>(ended);
  }
  for (size_t k = 0; k < end_counts_.size(); ++k) {
    report["end/" + termination_names_[k]] = end_counts_[k];
  }
  if (ticks_ > 0) {
    const auto ticks = static_cast<double>(ticks_);
    for (size_t k = 0; k < reward_sums_.size(); ++k) {
      report["reward/" + reward_names_[k]] = reward_sums_[k] / ticks;
    }
    report["command_error"] = command_error_sum_ / ticks;
  }
  report["unstable"] = unstable_;
  report["non_finite"] = non_finite_;
  ticks_ = 0;
  std::fill(reward_sums_.begin(), reward_sums_.end(), 0.0);
  command_error_sum_ = 0;
  std::fill(end_counts_.begin(), end_counts_.end(), 0);
  return_sum_ = 0;
  length_sum_ = 0;
  return report;
}

std::string TickStatistics::describe_first_bad() const {
  const std::string component = "component " + std::to_string(first_bad_.term);
  std::string what;
  switch (first_bad_.kind) {
    case kVerdictGood:
      return "";
    case kVerdictPhysics:
      what = "physics was unstable";
      break;
    case kVerdictAction:
      what = component + " of the action was not finite";
      break;
    case kVerdictReward:
      what = "rewards." + reward_names_[first_bad_.term] + " was not finite";
      break;
    case kVerdictObservation:
      what = component + " of the observation was not finite";
      break;
    default:
      what = component + " of the critic's observation was not finite";
  }
  return "tick " + std::to_string(first_bad_.tick) + ", environment " +
         std::to_string(first_bad_.environment) + ": " + what;
}

void TickStatistics::register_state(StateRegistry& registry) {
  const auto size = [](const auto& values) { return static_cast<int64_t>(values.size()); };
  registry.add("statistics/ticks", DType::kU64, {1}, &ticks_);
  registry.add("statistics/reward_sums", DType::kF64, {size(reward_sums_)}, reward_sums_.data());
  registry.add("statistics/command_error_sum", DType::kF64, {1}, &command_error_sum_);
  registry.add("statistics/end_counts", DType::kU64, {size(end_counts_)}, end_counts_.data());
  registry.add("statistics/return_sum", DType::kF64, {1}, &return_sum_);
  registry.add("statistics/length_sum", DType::kF64, {1}, &length_sum_);
  registry.add("statistics/episodes", DType::kU64, {1}, &episodes_);
  registry.add("statistics/unstable", DType::kU64, {1}, &unstable_);
  registry.add("statistics/non_finite", DType::kU64, {1}, &non_finite_);
  registry.add("statistics/first_bad_tick", DType::kU64, {1}, &first_bad_.tick);
  registry.add("statistics/first_bad_environment", DType::kI32, {1}, &first_bad_.environment);
  registry.add("statistics/first_bad_term", DType::kI32, {1}, &first_bad_.term);
  registry.add("statistics/first_bad_kind", DType::kI32, {1}, &first_bad_.kind);
  registry.add("statistics/recent_returns", DType::kF32, {kRecent}, recent_returns_.data());
  registry.add("statistics/recent_lengths", DType::kI32, {kRecent}, recent_lengths_.data());
}

}  // namespace millrace

#include "player.h"

#include "backend.h"
#include "blas_threads.h"
#include "run_plan.h"

namespace millrace {

namespace {

constexpr int kEpisodesMax = 1 << 16;

int episodes_of(const nlohmann::json& config) {
  const int64_t episodes = config.at("play").at("episodes").get<int64_t>();
  if (episodes < 1 || episodes > kEpisodesMax) {
    throw Failure(Code::kInvalid, "play.episodes: " + std::to_string(episodes) +
                                      " is not between 1 and " + std::to_string(kEpisodesMax));
  }
  return static_cast<int>(episodes);
}

}  // namespace

Player::Player(const nlohmann::json& config)
    : device_(parse_plan(config).device),
      episodes_(episodes_of(config)),
      sim_(config, episodes_, parse_plan(config).threads, parse_plan(config).seed),
      policy_(policy_shape_of(parse_plan(config).learner, sim_.task->layout), episodes_),
      rows_(static_cast<size_t>(episodes_) * static_cast<size_t>(sim_.task->layout.width())),
      has_ended_(static_cast<size_t>(episodes_)) {
  set_blas_threads(parse_plan(config).learner.threads);
  policy_.register_state(registry_);
  sim_.update->start_episodes(*sim_.physics, false);
}

void Player::restored(bool) {
  policy_.state_restored();
  has_policy_ = true;
}

nlohmann::json Player::facts() const {
  return {{"physics", sim_.describe()},
          {"threads", {{"workers", sim_.pool->workers()}}},
          {"device", {{"requested", device_}, {"effective", backend_cpu().name}}}};
}

nlohmann::json Player::advance(uint64_t ticks) {
  if (!has_policy_) throw Failure(Code::kState, "no policy was loaded");
  error_.check();
  ended_ = nlohmann::json::array();
  try {
    for (uint64_t k = 0; k < ticks && ended_count_ < episodes_; ++k) {
      if (stop_requested_.load(std::memory_order_relaxed)) break;
      tick();
    }
  } catch (const Failure& failure) {
    error_.set({"player.tick", tick_, "player", failure.code(), failure.what()});
    throw;
  }
  return {{"tick", tick_},
          {"env_steps", tick_ * static_cast<uint64_t>(episodes_)},
          {"updates", 0},
          {"stopped", stop_requested_.load(std::memory_order_relaxed)},
          {"finished", ended_count_ == episodes_},
          {"metrics", nlohmann::json::object()},
          {"episodes", ended_}};
}

void Player::tick() {
  UpdateStep& update = *sim_.update;
  policy_.act_deterministic(update.observations(), episodes_, update.actions());
  if (update.push_pending()) {
    sim_.physics->apply_velocity_change(update.push_mask(), update.push_velocity());
  }
  expect_operation(sim_.physics->step(update.actions(), tick_), Operation::kStep);
  update.update(tick_, 0, episodes_, rows_.data());
  update.reset(tick_, *sim_.physics);
  for (const EpisodeRecord& record : update.statistics().ended()) {
    const size_t environment = static_cast<size_t>(record.environment);
    if (has_ended_[environment]) continue;
    has_ended_[environment] = 1;
    ++ended_count_;
    ended_.push_back(
        {{"environment", record.environment},
         {"return", record.episode_return},
         {"length", record.length},
         {"reason", sim_.task->termination_names.at(static_cast<size_t>(record.reason - 1))}});
  }
  ++tick_;
}

}  // namespace millrace

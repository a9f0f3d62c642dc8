#include "update.h"

#include <algorithm>
#include <vector>

#include "motion_clip.h"
#include "streaming_copy.h"

namespace millrace {

namespace {

// The first reset belongs to no tick of a run: its draws use the last tick number there is.
constexpr uint64_t kBeforeFirstTick = (uint64_t{1} << 56) - 1;

constexpr const char* kCounterNames[kCounterFieldCount] = {
    "step",    "ticks_lived", "command_timer", "push_timer", "frame",
    "episode", "done",        "truncated",     "end_reason", "desynchronised"};

MotionView view_of(const Task& task) { return task.motion ? task.motion->view() : MotionView{}; }

}  // namespace

std::vector<EpisodeFieldInfo> episode_fields(const UpdateParams& p) {
  const int command = p.command.enabled ? 5 : 0;
  const int gait = p.gait.enabled ? 2 : 0;
  return {{kAction, "action", p.num_actions},
          {kLastAction, "last_action", p.num_actions},
          {kCommand, "command", command},
          {kGaitPhase, "gait_phase", gait},
          {kReturn, "return", 1},
          {kPushVelocity, "push_velocity", p.push.enabled ? 6 : 0},
          {kFootAirTime, "foot_air_time", gait},
          {kObservation, "observation", p.observation.dim},
          {kCritic, "critic", p.critic.dim},
          {kReward, "reward", 1},
          {kTermReward, "term_reward", p.reward_count}};
}

const char* counter_name(CounterField field) { return kCounterNames[field]; }

UpdateStep::UpdateStep(const Task& task, const FieldView* sim_fields, int num_envs, uint64_t seed,
                       Backend* device)
    : params_(task.params),
      reset_spec_(task.reset),
      motion_reset_(task.motion_reset),
      motion_(task.motion),
      layout_(task.layout),
      num_envs_(num_envs),
      seed_(seed),
      curriculum_(task.penalty, num_envs),
      frame_sampler_(task.frame_sampler, view_of(task)),
      motion_digest_(task.motion ? task.motion->digest() : 0),
      statistics_(task.reward_names, task.termination_names),
      push_mask_(static_cast<size_t>(num_envs), 0),
      reset_mask_(static_cast<size_t>(num_envs), 0),
      qpos_(static_cast<size_t>(num_envs) * task.reset.qpos.size()),
      qvel_(static_cast<size_t>(num_envs) * static_cast<size_t>(task.reset.nv)),
      gains_(static_cast<size_t>(num_envs) * 2, 1.0) {
  std::copy(sim_fields, sim_fields + kSimFieldCount, state_.sim);
  state_.motion = view_of(task);
  allocate_carriers(device);
}

void UpdateStep::allocate_carriers(Backend* device) {
  HostBlockLayout layout;
  std::vector<uint64_t> offsets;
  const auto add = [&](const std::string& name, DType dtype, int dim) {
    carriers_.push_back({"update/" + name, dtype, {num_envs_, dim}, nullptr, false});
    offsets.push_back(layout.add(carriers_.back().bytes()));
  };
  const std::vector<EpisodeFieldInfo> fields = episode_fields(params_);
  for (const EpisodeFieldInfo& info : fields) {
    if (info.dim > 0) add(info.name, DType::kF32, info.dim);
  }
  for (const char* name : kCounterNames) add(name, DType::kI32, 1);
  const uint64_t outcomes = layout.add(static_cast<uint64_t>(num_envs_) * sizeof(UpdateOutcome));
  block_ = std::make_unique<HostBlock>(layout, device);
  outcomes_ = reinterpret_cast<UpdateOutcome*>(block_->at(outcomes));  // cleared: kVerdictGood

  for (size_t i = 0; i < carriers_.size(); ++i) carriers_[i].data = block_->at(offsets[i]);
  size_t next = 0;
  for (const EpisodeFieldInfo& info : fields) {
    if (info.dim == 0) continue;
    auto* data = static_cast<float*>(carriers_[next++].data);
    state_.episode[info.field] = {data, info.dim, 1, info.dim};
  }
  for (CounterView& counter : state_.counter) {
    counter = {static_cast<int*>(carriers_[next++].data), 1};
  }
}

void UpdateStep::update(uint64_t tick, int begin, int end, float* rows) {
  const UpdateArguments arguments = this->arguments(tick);
  const auto width = static_cast<size_t>(layout_.width());
  thread_local std::vector<float> row;
  row.resize(width);
  for (int env = begin; env < end; ++env) {
    outcomes_[env] = update_environment(SoloTeam(), params_, arguments, state_, env, row.data());
    streaming_copy(rows + static_cast<size_t>(env) * width, row.data(), width);
  }
  streaming_fence();  // whoever publishes the rows only knows that this call has returned
}

void UpdateStep::start_episodes(SimBackend& backend, bool desynchronised) {
  std::fill(reset_mask_.begin(), reset_mask_.end(), uint8_t{1});
  reset_masked(kBeforeFirstTick, backend, desynchronised);
  find_pushes();
}

int UpdateStep::reset(uint64_t tick, SimBackend& backend) {
  statistics_.add(tick, state_, outcomes_, num_envs_);
  curriculum_.episodes_ended(static_cast<int>(statistics_.ended().size()),
                             statistics_.mean_length_ended());
  report_failures();
  int done = 0;
  for (int env = 0; env < num_envs_; ++env) {
    const bool ended = counter_of(state_.counter[kDone], env) != 0;
    reset_mask_[static_cast<size_t>(env)] = ended ? 1 : 0;
    counter_of(state_.counter[kEpisode], env) += ended ? 1 : 0;
    done += ended ? 1 : 0;
  }
  if (done > 0) reset_masked(tick, backend, false);
  find_pushes();
  return done;
}

// Failures of desynchronised first episodes count no more than their lengths do.
void UpdateStep::report_failures() {
  if (!motion_) return;
  std::vector<int> frames;
  for (const EpisodeRecord& record : statistics_.ended()) {
    const int env = record.environment;
    if (counter_of(state_.counter[kTruncated], env)) continue;
    frames.push_back(counter_of(state_.counter[kFrame], env));
  }
  frame_sampler_.episodes_failed(frames);
}

void UpdateStep::draw_starts(uint64_t tick, const ResetSpec& spec) {
  const size_t nq = spec.qpos.size();
  const auto nv = static_cast<size_t>(spec.nv);
  for (int env = 0; env < num_envs_; ++env) {
    const auto row = static_cast<size_t>(env);
    if (!reset_mask_[row]) continue;
    double* qpos = &qpos_[row * nq];
    double* qvel = &qvel_[row * nv];
    double* gains = &gains_[row * 2];
    if (motion_) {
      const int frame = frame_sampler_.draw(seed_, tick, env);
      counter_of(state_.counter[kFrame], env) = frame;
      draw_motion_start(spec, motion_reset_, state_.motion, frame, seed_, tick, env, qpos, qvel,
                        gains);
    } else {
      draw_start(spec, seed_, tick, env, qpos, qvel, gains);
    }
  }
}

void UpdateStep::reset_masked(uint64_t tick, SimBackend& backend, bool first) {
  ResetSpec spec = reset_spec_;
  spec.randomise_gains = spec.randomise_gains && backend.capabilities().can_randomise_gains;
  draw_starts(tick, spec);
  backend.reset(reset_mask_.data(), qpos_.data(), qvel_.data(), gains_.data());
  const UpdateArguments arguments = this->arguments(tick);
  for (int env = 0; env < num_envs_; ++env) {
    if (!reset_mask_[static_cast<size_t>(env)]) continue;
    begin_episode(params_, arguments, state_, env, first);
    observe_reset(params_, arguments, state_, env);
    if (first_non_finite(SoloTeam(), state_.episode[kObservation], env) >= 0 ||
        first_non_finite(SoloTeam(), state_.episode[kCritic], env) >= 0) {
      throw Failure(Code::kDevice, "tick " + std::to_string(tick) + ", environment " +
                                       std::to_string(env) +
                                       ": the first observation of an episode is not finite");
    }
  }
}

void UpdateStep::find_pushes() {
  const FieldView push = state_.episode[kPushVelocity];
  push_count_ = 0;
  for (int env = 0; env < num_envs_; ++env) {
    bool pending = false;
    for (int i = 0; i < push.dim; ++i) pending = pending || component(push, env, i) != 0.0f;
    push_mask_[static_cast<size_t>(env)] = pending ? 1 : 0;
    push_count_ += pending ? 1 : 0;
  }
}

nlohmann::json UpdateStep::take_statistics() {
  nlohmann::json report = statistics_.take();
  report["penalty_scale"] = curriculum_.scale();
  frame_sampler_.report(report);
  return report;
}

void UpdateStep::register_state(StateRegistry& registry) {
  for (const StateTensor& carrier : carriers_) {
    registry.add(carrier.name, carrier.dtype, carrier.shape, carrier.data, carrier.is_replay);
  }
  curriculum_.register_state(registry);
  frame_sampler_.register_state(registry);
  if (motion_) registry.add("curriculum/motion_digest", DType::kU64, {1}, &motion_digest_);
  statistics_.register_state(registry);
}

void UpdateStep::state_restored() {
  find_pushes();
  if (!motion_) return;
  if (motion_digest_ != motion_->digest()) {
    throw Failure(Code::kInvalid, "the checkpoint belongs to another motion than " +
                                      motion_->source + ": env.motion_file has changed");
  }
  for (int env = 0; env < num_envs_; ++env) {
    const int frame = counter_of(state_.counter[kFrame], env);
    if (frame < 0 || frame >= motion_->frames) {
      throw Failure(Code::kInvalid, "the checkpoint holds frame " + std::to_string(frame) +
                                        " of a motion of " + std::to_string(motion_->frames));
    }
  }
  frame_sampler_.state_restored();
}

}  // namespace millrace

// UpdateStep: the host side of the update step. Owns the episode and counter carriers, the
// outcomes, the curriculum and the statistics; reads the sim fields of the physics owner.
//
// Per tick: fill actions() -> backend.step -> update() over all environments, by any threads on
// disjoint ranges, or a device that writes the same carriers and outcomes -> reset() on the
// collector's thread. All other calls: the collector's thread. The addresses never change.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "curriculum.h"
#include "host_block.h"
#include "sim_backend.h"
#include "state_registry.h"
#include "task.h"
#include "tick_statistics.h"

namespace millrace {

// A float carrier of the update step.
struct EpisodeFieldInfo {
  EpisodeField field;
  const char* name;
  int dim;  // 0 = the task does not use it
};
std::vector<EpisodeFieldInfo> episode_fields(const UpdateParams& params);
const char* counter_name(CounterField field);

class UpdateStep {
 public:
  // `sim_fields` are the kSimFieldCount views of the physics owner; they must outlive this. A
  // device that runs the update step pins the carriers.
  UpdateStep(const Task& task, const FieldView* sim_fields, int num_envs, uint64_t seed,
             Backend* device = nullptr);

  float* actions() { return state_.episode[kAction].data; }  // num_envs x action_dim
  const float* observations() const { return state_.episode[kObservation].data; }
  const float* critic_observations() const { return state_.episode[kCritic].data; }

  // The seven stages for environments [begin, end) of tick `tick`, after the physics stepped.
  // `rows` is the whole slot: environment i's row stands at rows + i * layout width.
  void update(uint64_t tick, int begin, int end, float* rows);

  // What update() goes by in `tick`.
  UpdateArguments arguments(uint64_t tick) const { return {seed_, tick, curriculum_.scale()}; }

  // Starts all environments. Desynchronised first episodes begin at a random point of the episode
  // clock and are left out of the statistics.
  void start_episodes(SimBackend& backend, bool desynchronised);
  // Collects the tick's statistics, lets the curriculum see the ended episodes, and starts the done
  // environments anew. Returns how many those were.
  int reset(uint64_t tick, SimBackend& backend);
  // Of every environment: not 0 where the last reset started it anew.
  const uint8_t* reset_mask() const { return reset_mask_.data(); }

  // Velocity changes to apply before the next physics step; a reset clears its environment's.
  bool push_pending() const { return push_count_ > 0; }
  const uint8_t* push_mask() const { return push_mask_.data(); }
  const float* push_velocity() const { return state_.episode[kPushVelocity].data; }

  const TickStatistics& statistics() const { return statistics_; }
  // TickStatistics::take() and the curriculum's numbers.
  nlohmann::json take_statistics();
  const PenaltyCurriculum& curriculum() const { return curriculum_; }
  const FrameSampler& frame_sampler() const { return frame_sampler_; }

  // The carriers this owns, named update/<field>; they are part of the checkpoint.
  const std::vector<StateTensor>& carriers() const { return carriers_; }
  const StateView& state() const { return state_; }
  // The block that all carriers and the outcomes lie in.
  HostRange memory() const { return block_->range(); }
  UpdateOutcome* outcomes() const { return outcomes_; }
  void register_state(StateRegistry& registry);
  // After a checkpoint was written into the registered tensors.
  void state_restored();

 private:
  void allocate_carriers(Backend* device);
  void reset_masked(uint64_t tick, SimBackend& backend, bool first);
  void draw_starts(uint64_t tick, const ResetSpec& spec);
  void report_failures();
  void find_pushes();

  UpdateParams params_;
  ResetSpec reset_spec_;
  MotionResetSpec motion_reset_;
  std::shared_ptr<const MotionClip> motion_;
  RowLayout layout_;
  int num_envs_;
  uint64_t seed_;
  StateView state_ = {};
  std::unique_ptr<HostBlock> block_;
  std::vector<StateTensor> carriers_;
  UpdateOutcome* outcomes_ = nullptr;
  PenaltyCurriculum curriculum_;
  FrameSampler frame_sampler_;
  uint64_t motion_digest_ = 0;  // as the checkpoint has it
  TickStatistics statistics_;
  std::vector<uint8_t> push_mask_, reset_mask_;
  int push_count_ = 0;
  std::vector<double> qpos_, qvel_, gains_;
};

}  // namespace millrace

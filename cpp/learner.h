// Learner: owns every network, optimizer and statistic of training, and its own random stream.
//
// All calls come from the learner's thread. update() is a pure function of the state, the gathered
// rows and the update index; thread counts other than the configured BLAS one do not enter.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "algorithm.h"
#include "layout.h"
#include "policy.h"
#include "state_registry.h"

namespace millrace {

// How rewards are divided by a running measure of returns (reward_scale.h), or not at all.
enum class RewardScaling { kOff, kEpisode, kFlashSac };

// What the critics learn: a distribution of values, each from its own target; or one value, from
// the smaller of both targets.
enum class CriticKind { kC51, kScalar };

// The configuration's `learner` section; ranges are checked by parse_learner.
struct LearnerSpec {
  int batch;  // rows the learner sees; with symmetry half of them are gathered
  int updates_per_tick;
  int learning_starts;   // ticks before the first update
  int policy_frequency;  // critic updates per actor step, counted over the whole run
  float gamma;
  float tau;
  NetworkBody network = NetworkBody::kFastSac;  // of FastSAC alone, like scalar critics
  int actor_hidden, critic_hidden;              // of the first layer
  CriticKind critic = CriticKind::kC51;
  int atoms;  // of c51 alone, like its support
  float v_min, v_max;
  float actor_lr, critic_lr, alpha_lr;
  // Each optimizer's rate falls along half a cosine, over that many steps of its own, to this share
  // of it; 0 steps: it stays.
  int lr_decay_steps;
  float lr_final_share;
  float weight_decay, beta1, beta2;
  float alpha_init;
  float target_entropy_ratio;  // target entropy = -ratio x action dimensions
  float max_grad_norm;         // 0: no clipping
  bool symmetry;
  bool observation_normalizer;
  RewardScaling reward_scaling;
  int noise_repeat_max;  // ticks that exploration keeps a draw at most; 1: a new one each tick
  int threads;           // of the BLAS; results depend on it
  std::string place = "auto";  // where the programs run, as requested: auto, host, device
  Algorithm algorithm = Algorithm::kFastSac;  // the configuration's `algo`

  int gathered_rows() const { return symmetry ? batch / 2 : batch; }
};

// Throws Failure(kInvalid) naming the key ("learner.tau …") for a missing, unknown or bad value.
LearnerSpec parse_learner(const nlohmann::json& learner);

PolicyShape policy_shape_of(const LearnerSpec& spec, const RowLayout& layout);

// Mirror image of a vector: out[i] = sign[i] * in[source[i]].
struct MirrorColumns {
  std::vector<int> source;
  std::vector<float> sign;
};

struct RowMirror {
  MirrorColumns observation, critic, action;
};

class Learner {
 public:
  virtual ~Learner() = default;

  // rows: LearnerSpec::gathered_rows() packed rows, row_stride floats apart, where the learner's
  // programs run. update_index counts updates of the whole run from 0.
  virtual void update(const float* rows, int row_stride, uint64_t update_index) = 0;
  // Rewards of the updates to come are multiplied by it.
  virtual void set_reward_scale(float scale) = 0;
  // Committed rows in order, each once, before the updates of their tick; in host memory.
  virtual void normalise_from(const float* rows, uint64_t count, int row_stride) = 0;

  // A consistent snapshot between two updates, of host memory; layout of PolicyShape.
  virtual const float* policy_parameters() = 0;
  // The same into memory where the programs run; returns when it is there.
  virtual void copy_policy_to(float* parameters) = 0;
  virtual size_t policy_parameter_count() const = 0;
  virtual PolicyShape policy_shape() const = 0;

  // Averages since the last call, by metric name, and "learner/nonfinite_updates": critic or actor
  // steps left out because a loss or gradient was not finite.
  virtual nlohmann::json take_statistics() = 0;
  // Updates so far.
  virtual uint64_t updates() const = 0;
  // {programs: [{name, ops: [{kind, file, line}]}]}, for the manifest.
  virtual nlohmann::json describe() const = 0;

  // CapturedProgram::describe() of each device program by name; empty on the host.
  virtual nlohmann::json graph_facts() const = 0;
  // SelectedProgram::describe() of those whose way is selected.
  virtual nlohmann::json selection_facts() const { return nlohmann::json::object(); }

  virtual void register_state(StateRegistry& registry) = 0;
  // Before registered tensors are read, and after they were written.
  virtual void fetch_state() = 0;
  virtual void state_restored() = 0;
  virtual size_t bytes() const = 0;
};

}  // namespace millrace

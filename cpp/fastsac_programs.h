// The two programs of one FastSAC update, recorded once over one workspace:
//   critic: next action and its log pi -> both target critics' own projected distributions -> cross
//           entropy of both critics -> AdamW with the targets' moving average -> temperature step
//   actor:  new action -> mean of both expected values -> gradient through the critics -> AdamW
// With scalar critics: the smaller target value -> squared error; the smaller value for the actor.
// The actor program reads the critic input that the critic program of the same update unpacked.
//
// Only records: memory comes with workspace.allocate(), so bytes can be asked for first.
#pragma once

#include <memory>

#include "layout.h"
#include "learner.h"
#include "learner_statistics.h"

namespace millrace {

struct FastSacPrograms {
  FastSacPrograms(const LearnerSpec& spec, const RowLayout& layout);
  FastSacPrograms(const FastSacPrograms&) = delete;
  FastSacPrograms& operator=(const FastSacPrograms&) = delete;

  // A trained vector with what its optimizer needs.
  struct Trained {
    uint64_t count;
    Operand parameters, gradient, first_moment, second_moment, step;
    Operand norm, clip;
  };
  // A mirror map in carriers.
  struct Mirror {
    Operand source, sign;
  };

  LearnerSpec spec;
  RowLayout layout;
  Workspace workspace;
  PolicyShape policy_shape;
  Network actor, critic;
  Trained actor_state, critic_state;  // actor_state.parameters begins the policy's parameters
  Operand target;                     // parameters of the target critics
  Operand log_alpha, alpha_first_moment, alpha_second_moment, alpha_step, alpha_gradient;
  Operand observation_mean, observation_scale, critic_mean, critic_scale;  // with normaliser
  Mirror observation_mirror, critic_mirror, action_mirror;                 // with symmetry
  Operand finite;
  std::unique_ptr<LearnerStatistics> critic_statistics, actor_statistics;
  std::unique_ptr<Program> critic_program, actor_program;
  std::vector<const Program*> all() const { return {critic_program.get(), actor_program.get()}; }

 private:
  struct Buffers {
    Operand observation, critic_input, next_critic_input;
    Operand action_heads, noise, log_probability, action_gradient, action_heads_gradient;
    Operand logits, target_values, logits_gradient;  // of scalar critics: values
    Network::Activations actor, critic;
  };

  Trained add_trained(const std::string& name, uint64_t count, uint64_t extra);
  void add_carriers();
  UnpackOp unpack(int column, int width, Operand target, int target_stride, const Mirror& mirror,
                  Operand mean, Operand scale) const;
  UnpackOp unpack_observation(int column) const;
  UnpackOp unpack_critic(int column, Operand target) const;
  SampleActionOp sample(u32 first_normal, Operand critic_input) const;
  void record_critic();
  void record_critic_loss(Program& program);
  ProjectTargetOp projected_target() const;
  ScalarTargetOp scalar_target() const;
  CriticLossOp categorical_critic_loss() const;
  ScalarCriticLossOp scalar_critic_loss() const;
  ActorLossOp categorical_actor_loss() const;
  ScalarActorLossOp scalar_actor_loss() const;
  void record_actor();
  void record_step(Program& program, const Trained& trained, Operand loss, LearningRate rate,
                   Operand moving_target);

  bool has_scalar_critics() const { return spec.critic == CriticKind::kScalar; }
  int critic_outputs() const { return has_scalar_critics() ? 1 : spec.atoms; }
  int critic_width() const { return layout.critic_dim + layout.action_dim; }
  Support support() const { return {spec.atoms, spec.v_min, spec.v_max}; }
  AdamWConstants constants(float weight_decay) const {
    return {spec.beta1, spec.beta2, weight_decay};
  }

  Buffers buffers_;
};

}  // namespace millrace

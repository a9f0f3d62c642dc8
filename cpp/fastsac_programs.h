// FastSAC's updates, recorded once over one workspace:
//   critics: next action and its log pi -> both target critics' own projected distributions ->
//            cross entropy of both critics -> AdamW with the targets' moving average -> temperature
//            step
//   actor:   new action -> mean of both expected values -> gradient through the critics -> AdamW
// With scalar critics: the smaller target value -> squared error; the smaller value for the actor.
// The new action waits for nothing of the critics', so it has buffers of its own and is recorded
// before them.
#pragma once

#include "network.h"
#include "sac_programs.h"

namespace millrace {

struct FastSacPrograms : SacPrograms {
  FastSacPrograms(const LearnerSpec& spec, const RowLayout& layout);

  void initialise(u64 seed) override;
  const std::vector<NetworkTensor>& actor_tensors() const override { return actor.tensors(); }
  const std::vector<NetworkTensor>& critic_tensors() const override { return critic.tensors(); }
  bool steps_temperature_with_actor() const override { return false; }

  Network actor, critic;

 private:
  struct Buffers {
    Operand observation, next_observation;
    Operand critic_input, next_critic_input, acting_critic_input;  // with whose action
    Action action, next_action;
    Operand action_gradient, action_heads_gradient;
    Operand logits, next_logits;   // of categorical critics
    Operand values, least_values;  // of scalar ones
    Operand target_values, values_gradient;
    // The target critics have their own, so that they need not wait for the critics.
    Network::Activations actor, next_actor, critic, target_critic;
  };

  int observation_stride() const override { return actor.input_stride(); }
  int critic_stride() const override { return critic.input_stride(); }
  int value_stride() const override { return critic.head_width(); }
  // The gradient of the critics' input is computed from here on: the vector that the action begins
  // in, to the end.
  int first_gradient_column() const { return layout.critic_dim / kVectorWidth * kVectorWidth; }
  bool has_scalar_critics() const { return spec.critic == CriticKind::kScalar; }
  // The ops on scalar critics' values are the way back through the head, too.
  Network::HeadGradient critic_head_gradient() const {
    return has_scalar_critics() ? Network::HeadGradient::kHasPassed
                                : Network::HeadGradient::kIsGiven;
  }
  void add_buffers();
  SampleActionOp sample(const Action& action, u32 first_normal, Operand critic_input) const;
  void record(Program& program, bool with_actor) override;
  void record_next_action(Program& program);
  void record_action(Program& program);
  void record_critic(Program& program);
  void record_critic_loss(Program& program);
  ProjectTargetOp projected_target() const;
  ScalarTargetOp scalar_target() const;
  CriticLossOp categorical_critic_loss() const;
  ScalarCriticGradientOp scalar_critic_gradient() const;
  ScalarCriticLossOp scalar_critic_loss() const;
  ActorLossOp categorical_actor_loss() const;
  ScalarActorGradientOp scalar_actor_gradient() const;
  ScalarActorLossOp scalar_actor_loss() const;
  void record_actor(Program& program);

  Buffers buffers_;
};

}  // namespace millrace

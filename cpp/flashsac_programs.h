// FlashSAC's updates, recorded once over one workspace. Rows of state and next state pass a network
// together, so that they share the statistics of its norms: the first half of such a batch is
// (s, a), the second (s', a').
//   critics: next action from the actor in evaluation mode -> target critics over both halves ->
//            projected distribution of the critic with the smaller value at s' -> both critics over
//            both halves, mean cross entropy -> Adam -> rows normalised, targets moved -> running
//            statistics of critics and targets, each towards their own batch
//   actor:   actor over s and s' -> action at s -> smaller value of the critics in evaluation mode
//            -> Adam -> rows normalised -> running statistics -> temperature step
// The action at s waits for nothing of the critics', so it has buffers of its own and is recorded
// before them.
#pragma once

#include "flashsac_network.h"
#include "sac_programs.h"

namespace millrace {

struct FlashSacPrograms : SacPrograms {
  FlashSacPrograms(const LearnerSpec& spec, const RowLayout& layout);

  void initialise(u64 seed) override;
  const std::vector<NetworkTensor>& actor_tensors() const override { return actor.tensors(); }
  const std::vector<NetworkTensor>& critic_tensors() const override { return critic.tensors(); }
  bool steps_temperature_with_actor() const override { return true; }

  FlashSacNetwork actor, critic;

 private:
  struct Buffers {
    Operand observation, critic_input;  // s, then s'
    Operand acting_critic_input;        // s with the actor's action
    Action action, next_action;
    Operand action_heads_gradient;
    Operand input_gradient;  // of the critics, [row][critic_stride()]
    Operand logits, next_logits, target_distribution, logits_gradient;
    Operand actor_statistics, critic_statistics, target_statistics;  // of the batch
    // The target critics have their own, so that they need not wait for the critics.
    FlashSacNetwork::Activations actor, next_actor, critic, target_critic;
  };

  void add_buffers();
  // Writes the action behind the critic observation.
  SampleActionOp sample(const Action& action, u32 first_normal, Operand critic_input) const;
  void record(Program& program, bool with_actor) override;
  void record_next_action(Program& program);
  void record_action(Program& program);
  void record_critic(Program& program);
  void record_targets(Program& program);
  void record_critic_loss(Program& program);
  void record_actor(Program& program);
  void record_actor_loss(Program& program);

  int observation_stride() const override { return actor.input_stride(); }
  int critic_stride() const override { return critic.input_stride(); }
  int value_stride() const override { return critic.head_width(); }
  int all_rows() const { return 2 * spec.batch; }
  // Where the second half of rows of that width begins.
  uint64_t second_half(int width) const { return static_cast<uint64_t>(spec.batch) * width; }
  Operand next_observation() const {
    return buffers_.observation + second_half(observation_stride());
  }
  Operand next_critic_input() const { return buffers_.critic_input + second_half(critic_stride()); }

  Buffers buffers_;
};

}  // namespace millrace

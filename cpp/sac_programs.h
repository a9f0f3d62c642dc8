// What the programs of FastSAC and FlashSAC have in common: the carriers of trained vectors with
// their optimizers, of temperature, normaliser, mirror and statistics, and the ops that only move
// rows or step an optimizer. The networks, and what is computed with them, are a subclass's.
//
// Only records: memory comes with workspace.allocate(), so bytes can be asked for first.
#pragma once

#include <memory>
#include <vector>

#include "layout.h"
#include "learner.h"
#include "learner_statistics.h"
#include "network_tensor.h"

namespace millrace {

struct SacPrograms {
  static constexpr int kCritics = 2;

  SacPrograms(const LearnerSpec& spec, const RowLayout& layout);
  virtual ~SacPrograms() = default;
  SacPrograms(const SacPrograms&) = delete;
  SacPrograms& operator=(const SacPrograms&) = delete;

  // Of the algorithm that `spec` names.
  static std::unique_ptr<SacPrograms> make(const LearnerSpec& spec, const RowLayout& layout);

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

  // Writes the initial parameters of actor, critics and targets.
  virtual void initialise(u64 seed) = 0;
  virtual const std::vector<NetworkTensor>& actor_tensors() const = 0;
  virtual const std::vector<NetworkTensor>& critic_tensors() const = 0;
  // Whether log alpha is stepped once per actor step, not once per critic step.
  virtual bool steps_temperature_with_actor() const = 0;

  LearnerSpec spec;
  RowLayout layout;
  Workspace workspace;
  PolicyShape policy_shape;
  Trained actor_state, critic_state;  // actor_state.parameters begins the policy's parameters
  Operand target;                     // parameters of the target critics
  Operand log_alpha, alpha_first_moment, alpha_second_moment, alpha_step, alpha_gradient;
  Operand observation_mean, observation_scale, critic_mean, critic_scale;  // with normaliser
  Mirror observation_mirror, critic_mirror, action_mirror;                 // with symmetry
  Operand finite;
  std::unique_ptr<LearnerStatistics> critic_statistics, actor_statistics;
  // An update of the critics alone, and one of critics and actor: one program, so that what the
  // actor's part does not need of the critics' runs beside it.
  std::unique_ptr<Program> critic_program, whole_program;
  const Program& program(bool with_actor) const {
    return with_actor ? *whole_program : *critic_program;
  }
  std::vector<const Program*> all() const { return {critic_program.get(), whole_program.get()}; }
  // Floats of actor_state.parameters that a policy takes.
  uint64_t policy_parameter_count() const { return policy_parameter_count_; }

 protected:
  // What the actor gives out, and what is drawn for spec.batch of its rows.
  struct Action {
    Operand heads, noise, log_probability;
  };

  // An optimizer's view of the first `count` floats of a span; further floats are only kept.
  Trained add_trained(const std::string& name, uint64_t count, uint64_t span);
  // All the carriers above. A span is a network's trained parameters and what is kept with them.
  void add_state(uint64_t actor_count, uint64_t actor_span, uint64_t critic_count,
                 uint64_t critic_span);
  // head_count: floats of the heads of all its rows.
  Action add_action(const std::string& name, uint64_t head_count);

  // Where networks read their rows of a batch.
  struct Inputs {
    Operand observation, next_observation;
    Operand critic, next_critic, acting_critic;  // the first with the batch's action
  };

  // All of them that the program needs, mirrored and normalised as configured.
  UnpackOp unpack(const Inputs& to, bool with_actor) const;
  // `opens`: nothing before it in the update has a verdict.
  AdamWOp step_of(const Trained& trained, Operand loss, bool opens, LearningRate rate) const;
  // Of the same heads.
  MeanDeviationOp mean_deviation(const ActionGradientOp& of) const;
  // Of log pi of spec.batch rows.
  TemperatureOp temperature_step(Operand log_probability) const;
  ProjectTargetOp projection() const;  // without its operands but log_alpha

  int critic_width() const { return layout.critic_dim + layout.action_dim; }
  // All of an update, in order.
  virtual void record(Program& program, bool with_actor) = 0;
  // Both programs; called once all buffers are there.
  void record_programs();
  // From row to row of the networks' inputs, and from group to group of their heads.
  virtual int observation_stride() const = 0;
  virtual int critic_stride() const = 0;
  virtual int value_stride() const = 0;
  Support support() const { return {spec.atoms, spec.v_min, spec.v_max}; }
  AdamWConstants constants(float weight_decay) const {
    return {spec.beta1, spec.beta2, weight_decay};
  }

 private:
  UnpackPart observation_part(int column, Operand to) const;
  UnpackPart critic_part(int column, Operand to) const;  // into rows of critic_stride()
  UnpackPart action_part(Operand critic_input) const;
  void add_statistics();

  uint64_t policy_parameter_count_ = 0;
};

}  // namespace millrace

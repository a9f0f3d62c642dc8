#include "flashsac_programs.h"

#include <cstring>

namespace millrace {
namespace {

// Environments of the initial-weights stream: tensors of the actor, then of the critics.
constexpr u32 kActorTensors = 0;
constexpr u32 kCriticTensors = 1024;

}  // namespace

FlashSacPrograms::FlashSacPrograms(const LearnerSpec& given, const RowLayout& rows)
    : SacPrograms(given, rows),
      actor(policy_shape.network()),
      critic({rows.critic_dim + rows.action_dim, given.critic_hidden, given.atoms, kCritics}) {
  MR_CHECK(spec.algorithm == Algorithm::kFlashSac, "these are the programs of another algorithm");
  add_state(actor.parameter_count(), actor.span(), critic.parameter_count(), critic.span());
  add_buffers();
  record_programs();
}

void FlashSacPrograms::initialise(u64 seed) {
  float* online = workspace.floats(critic_state.parameters);
  actor.initialise(workspace.floats(actor_state.parameters), seed, kActorTensors);
  critic.initialise(online, seed, kCriticTensors);
  std::memcpy(workspace.floats(target), online, critic.span() * sizeof(float));
}

void FlashSacPrograms::add_buffers() {
  const uint64_t rows = all_rows(), half = spec.batch;
  const uint64_t values = static_cast<uint64_t>(kCritics) * value_stride();
  const uint64_t heads = actor.head_width();
  const auto add = [this](const char* name, uint64_t count) {
    return workspace.add_transient(name, count);
  };
  const auto add_activation = [this](const char* name, uint64_t count) {
    return workspace.add_activation(name, count);
  };
  buffers_.observation = add_activation("batch/observation", rows * observation_stride());
  buffers_.critic_input = add_activation("batch/critic", rows * critic_stride());
  buffers_.acting_critic_input = add_activation("batch/acting_critic", half * critic_stride());
  buffers_.action = add_action("action", rows * heads);
  buffers_.next_action = add_action("next_action", half * heads);
  buffers_.action_heads_gradient = add_activation("action/heads_gradient", half * heads);
  buffers_.input_gradient = add("action/gradient", half * critic_stride());
  buffers_.logits = add("value/logits", rows * values);
  buffers_.next_logits = add("value/next_logits", rows * values);
  buffers_.target_distribution = add("value/target", half * values);
  buffers_.logits_gradient = add_activation("value/gradient", half * values);
  buffers_.actor_statistics = add("actor/batch_statistics", 2 * actor.statistics_count());
  buffers_.critic_statistics = add("critic/batch_statistics", 2 * critic.statistics_count());
  buffers_.target_statistics = add("target/batch_statistics", 2 * critic.statistics_count());
  buffers_.actor = actor.add_activations(workspace, "actor", all_rows(), true);
  buffers_.next_actor = actor.add_activations(workspace, "next_actor", spec.batch, false);
  buffers_.critic = critic.add_activations(workspace, "critic", all_rows(), true);
  buffers_.target_critic = critic.add_activations(workspace, "target", all_rows(), false);
}

SampleActionOp FlashSacPrograms::sample(const Action& action, u32 first_normal,
                                        Operand critic_input) const {
  SampleActionOp op{};
  op.rows = spec.batch;
  op.actions = layout.action_dim;
  op.heads_stride = actor.head_width();
  op.heads = action.heads;
  op.bias = actor_state.parameters + actor.head_bias();
  op.density = kFlashSacDensity;
  op.stream = kStreamLearnerNoise;
  op.first_normal = first_normal;
  op.action = critic_input + layout.critic_dim;
  op.action_stride = critic_stride();
  op.log_probability = action.log_probability;
  op.noise = action.noise;
  return op;
}

void FlashSacPrograms::record(Program& program, bool with_actor) {
  const Inputs inputs = {buffers_.observation, next_observation(), buffers_.critic_input,
                         next_critic_input(), buffers_.acting_critic_input};
  program.record(unpack(inputs, with_actor));
  record_next_action(program);
  if (with_actor) record_action(program);
  record_critic(program);
  if (with_actor) record_actor(program);
}

void FlashSacPrograms::record_next_action(Program& program) {
  actor.record_forward(program, {actor_state.parameters, Operand{}}, spec.batch, next_observation(),
                       observation_stride(), buffers_.next_actor, buffers_.next_action.heads);
  program.record(sample(buffers_.next_action, 0, next_critic_input()));
}

void FlashSacPrograms::record_action(Program& program) {
  actor.record_forward(program, {actor_state.parameters, buffers_.actor_statistics}, all_rows(),
                       buffers_.observation, observation_stride(), buffers_.actor,
                       buffers_.action.heads);
  // Normals behind those of the next action.
  program.record(sample(buffers_.action, layout.action_dim, buffers_.acting_critic_input));
}

void FlashSacPrograms::record_critic(Program& program) {
  const LearnerStatistics& scalars = *critic_statistics;
  record_targets(program);
  record_critic_loss(program);
  AdamWOp step = step_of(critic_state, scalars["loss/critic"], true, LearningRate::kCritic);
  step.rows = critic.row_blocks();
  step.target = target;
  program.record(step);
  program.record(critic.move_statistics(critic_state.parameters, buffers_.critic_statistics,
                                        all_rows(), finite));
  program.record(critic.move_statistics(target, buffers_.target_statistics, all_rows(), finite));
  program.record(scalars.op(finite));
}

void FlashSacPrograms::record_targets(Program& program) {
  critic.record_forward(program, {target, buffers_.target_statistics}, all_rows(),
                        buffers_.critic_input, critic_stride(), buffers_.target_critic,
                        buffers_.next_logits);
  ProjectTargetOp project = projection();
  project.logits = buffers_.next_logits + second_half(kCritics * value_stride());
  project.bias = target + critic.head_bias();
  project.log_probability = buffers_.next_action.log_probability;
  project.target = buffers_.target_distribution;
  project.takes_smallest = true;
  program.record(project);
}

void FlashSacPrograms::record_critic_loss(Program& program) {
  const LearnerStatistics& scalars = *critic_statistics;
  const FlashSacNetwork::Weights weights = {critic_state.parameters, buffers_.critic_statistics};
  critic.record_forward(program, weights, all_rows(), buffers_.critic_input, critic_stride(),
                        buffers_.critic, buffers_.logits);
  CriticLossOp loss{};
  loss.rows = spec.batch;
  loss.groups = kCritics;
  loss.support = support();
  loss.value_stride = value_stride();
  loss.logits = buffers_.logits;
  loss.bias = critic_state.parameters + critic.head_bias();
  loss.target = buffers_.target_distribution;
  loss.logits_gradient = buffers_.logits_gradient;
  loss.loss = scalars["loss/critic"];
  loss.value_mean = scalars["critic/q_mean"];
  loss.value_max = scalars["critic/q_max"];
  loss.value_min = scalars["critic/q_min"];
  loss.is_mean_over_groups = true;
  program.record(loss);
  critic.record_backward(program, weights, all_rows(), spec.batch, buffers_.critic_input,
                         critic_stride(), buffers_.critic, buffers_.logits_gradient,
                         critic_state.gradient);
}

void FlashSacPrograms::record_actor(Program& program) {
  const LearnerStatistics& scalars = *actor_statistics;
  const FlashSacNetwork::Weights weights = {actor_state.parameters, buffers_.actor_statistics};
  record_actor_loss(program);
  actor.record_backward(program, weights, all_rows(), spec.batch, buffers_.observation,
                        observation_stride(), buffers_.actor, buffers_.action_heads_gradient,
                        actor_state.gradient);
  AdamWOp step = step_of(actor_state, scalars["loss/actor"], false, LearningRate::kActor);
  step.rows = actor.row_blocks();
  program.record(step);
  program.record(
      actor.move_statistics(actor_state.parameters, buffers_.actor_statistics, all_rows(), finite));
  program.record(temperature_step(buffers_.action.log_probability));
  program.record(scalars.op(finite));
}

// From the action at s to the gradient of the heads.
void FlashSacPrograms::record_actor_loss(Program& program) {
  const LearnerStatistics& scalars = *actor_statistics;
  critic.record_forward(program, {critic_state.parameters, Operand{}}, spec.batch,
                        buffers_.acting_critic_input, critic_stride(), buffers_.critic,
                        buffers_.logits);
  ActorLossOp loss{};
  loss.rows = spec.batch;
  loss.groups = kCritics;
  loss.support = support();
  loss.value_stride = value_stride();
  loss.logits = buffers_.logits;
  loss.bias = critic_state.parameters + critic.head_bias();
  loss.log_probability = buffers_.action.log_probability;
  loss.log_alpha = log_alpha;
  loss.logits_gradient = buffers_.logits_gradient;
  loss.loss = scalars["loss/actor"];
  loss.entropy = scalars["policy/entropy"];
  loss.takes_smallest = true;
  program.record(loss);
  critic.record_input_gradient(program, critic_state.parameters, spec.batch,
                               buffers_.acting_critic_input, critic_stride(), buffers_.critic,
                               buffers_.logits_gradient, buffers_.input_gradient);
  ActionGradientOp heads{};
  heads.rows = spec.batch;
  heads.actions = layout.action_dim;
  heads.density = kFlashSacDensity;
  heads.heads_stride = actor.head_width();
  heads.heads = buffers_.action.heads;
  heads.bias = actor_state.parameters + actor.head_bias();
  heads.noise = buffers_.action.noise;
  heads.action_gradient = buffers_.input_gradient + layout.critic_dim;
  heads.action_gradient_stride = critic_stride();
  heads.log_alpha = log_alpha;
  heads.heads_gradient = buffers_.action_heads_gradient;
  program.record(heads);
  program.record(mean_deviation(heads));
}

}  // namespace millrace

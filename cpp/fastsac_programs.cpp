#include "fastsac_programs.h"

#include <cstring>

namespace millrace {
namespace {

// Environments of the initial-weights stream: tensors of the actor, then of the critics.
constexpr u32 kActorTensors = 0;
constexpr u32 kCriticTensors = 1024;

}  // namespace

FastSacPrograms::FastSacPrograms(const LearnerSpec& given, const RowLayout& rows)
    : SacPrograms(given, rows),
      actor(policy_shape.network()),
      critic({critic_width(), given.critic_hidden, has_scalar_critics() ? 1 : given.atoms, kCritics,
              given.network}) {
  MR_CHECK(spec.algorithm == Algorithm::kFastSac, "these are the programs of another algorithm");
  add_state(actor.parameter_count(), actor.parameter_count(), critic.parameter_count(),
            critic.parameter_count());
  add_buffers();
  record_programs();
}

void FastSacPrograms::initialise(u64 seed) {
  float* online = workspace.floats(critic_state.parameters);
  actor.initialise(workspace.floats(actor_state.parameters), seed, kActorTensors, true);
  critic.initialise(online, seed, kCriticTensors, false);
  std::memcpy(workspace.floats(target), online, critic_state.count * sizeof(float));
}

void FastSacPrograms::add_buffers() {
  const uint64_t rows = spec.batch;
  const uint64_t values = rows * kCritics * critic.head_width();
  const uint64_t observation = rows * actor.input_stride();
  const uint64_t critic_input = rows * critic.input_stride();
  const uint64_t heads = rows * actor.head_width();
  buffers_.observation = workspace.add_activation("batch/observation", observation);
  buffers_.next_observation = workspace.add_activation("batch/next_observation", observation);
  buffers_.critic_input = workspace.add_activation("batch/critic", critic_input);
  buffers_.next_critic_input = workspace.add_activation("batch/next_critic", critic_input);
  buffers_.acting_critic_input = workspace.add_activation("batch/acting_critic", critic_input);
  buffers_.action = add_action("action", heads);
  buffers_.next_action = add_action("next_action", heads);
  buffers_.action_heads_gradient = workspace.add_activation("action/heads_gradient", heads);
  buffers_.action_gradient = workspace.add_transient(
      "action/gradient", rows * (critic.input_stride() - first_gradient_column()));
  if (!has_scalar_critics()) {
    buffers_.logits = workspace.add_transient("value/logits", values);
    buffers_.next_logits = workspace.add_transient("value/next_logits", values);
  } else {
    buffers_.values = workspace.add_transient("value/values", rows * kCritics);
    buffers_.least_values = workspace.add_transient("value/least", rows);
  }
  buffers_.target_values =
      workspace.add_transient("value/target", has_scalar_critics() ? rows : values);
  buffers_.values_gradient = workspace.add_activation("value/gradient", values);
  buffers_.actor = actor.add_activations(workspace, "actor", spec.batch, true);
  buffers_.next_actor = actor.add_activations(workspace, "next_actor", spec.batch, false);
  buffers_.critic = critic.add_activations(workspace, "critic", spec.batch, true);
  buffers_.target_critic = critic.add_activations(workspace, "target", spec.batch, false);
}

// Writes the action behind the critic observation, where the critics read it.
SampleActionOp FastSacPrograms::sample(const Action& action, u32 first_normal,
                                       Operand critic_input) const {
  SampleActionOp op{};
  op.rows = spec.batch;
  op.actions = layout.action_dim;
  op.heads_stride = actor.head_width();
  op.heads = action.heads;
  op.bias = actor_state.parameters + actor.head().bias;
  op.stream = kStreamLearnerNoise;
  op.first_normal = first_normal;
  op.action = critic_input + layout.critic_dim;
  op.action_stride = critic.input_stride();
  op.log_probability = action.log_probability;
  op.noise = action.noise;
  return op;
}

void FastSacPrograms::record(Program& program, bool with_actor) {
  const Inputs inputs = {buffers_.observation, buffers_.next_observation, buffers_.critic_input,
                         buffers_.next_critic_input, buffers_.acting_critic_input};
  program.record(unpack(inputs, with_actor));
  record_next_action(program);
  if (with_actor) record_action(program);
  record_critic(program);
  if (with_actor) record_actor(program);
}

void FastSacPrograms::record_next_action(Program& program) {
  actor.record_forward(program, actor_state.parameters, buffers_.next_observation,
                       actor.input_stride(), buffers_.next_actor, buffers_.next_action.heads);
  program.record(sample(buffers_.next_action, 0, buffers_.next_critic_input));
}

void FastSacPrograms::record_action(Program& program) {
  actor.record_forward(program, actor_state.parameters, buffers_.observation, actor.input_stride(),
                       buffers_.actor, buffers_.action.heads);
  // Normals behind those of the next action.
  program.record(sample(buffers_.action, layout.action_dim, buffers_.acting_critic_input));
}

void FastSacPrograms::record_critic(Program& program) {
  record_critic_loss(program);
  AdamWOp step =
      step_of(critic_state, (*critic_statistics)["loss/critic"], true, LearningRate::kCritic);
  step.target = target;
  program.record(step);
  program.record(temperature_step(buffers_.next_action.log_probability));
  program.record(critic_statistics->op(finite));
}

void FastSacPrograms::record_critic_loss(Program& program) {
  critic.record_forward(program, target, buffers_.next_critic_input, critic.input_stride(),
                        buffers_.target_critic, buffers_.next_logits);
  program.record(has_scalar_critics() ? Op(scalar_target()) : Op(projected_target()));
  critic.record_forward(program, critic_state.parameters, buffers_.critic_input,
                        critic.input_stride(), buffers_.critic, buffers_.logits);
  program.record(has_scalar_critics() ? Op(scalar_critic_gradient())
                                      : Op(categorical_critic_loss()));
  critic.record_backward(program, critic_state.parameters, buffers_.critic_input,
                         critic.input_stride(), buffers_.critic, buffers_.values_gradient,
                         critic_state.gradient, critic_head_gradient());
  // Last: the way back waits for no number.
  if (has_scalar_critics()) program.record(scalar_critic_loss());
}

ProjectTargetOp FastSacPrograms::projected_target() const {
  ProjectTargetOp op = projection();
  op.logits = buffers_.next_logits;
  op.bias = target + critic.head().bias;
  op.log_probability = buffers_.next_action.log_probability;
  op.target = buffers_.target_values;
  return op;
}

ScalarTargetOp FastSacPrograms::scalar_target() const {
  ScalarTargetOp op{};
  op.head = critic.scalar_head(target, buffers_.target_critic);
  op.source_rows = spec.gathered_rows();
  op.reward_column = layout.reward();
  op.done_column = layout.done();
  op.truncated_column = layout.truncated();
  op.gamma = spec.gamma;
  op.log_probability = buffers_.next_action.log_probability;
  op.log_alpha = log_alpha;
  op.target = buffers_.target_values;
  return op;
}

CriticLossOp FastSacPrograms::categorical_critic_loss() const {
  const LearnerStatistics& scalars = *critic_statistics;
  CriticLossOp op{};
  op.rows = spec.batch;
  op.groups = kCritics;
  op.support = support();
  op.value_stride = value_stride();
  op.logits = buffers_.logits;
  op.bias = critic_state.parameters + critic.head().bias;
  op.target = buffers_.target_values;
  op.logits_gradient = buffers_.values_gradient;
  op.loss = scalars["loss/critic"];
  op.value_mean = scalars["critic/q_mean"];
  op.value_max = scalars["critic/q_max"];
  op.value_min = scalars["critic/q_min"];
  return op;
}

ScalarCriticGradientOp FastSacPrograms::scalar_critic_gradient() const {
  ScalarCriticGradientOp op{};
  op.head = critic.scalar_head(critic_state.parameters, buffers_.critic);
  op.target = buffers_.target_values;
  op.values = buffers_.values;
  op.values_gradient = buffers_.values_gradient;
  op.gradient = critic.scalar_head_gradient(buffers_.critic);
  return op;
}

ScalarCriticLossOp FastSacPrograms::scalar_critic_loss() const {
  const LearnerStatistics& scalars = *critic_statistics;
  ScalarCriticLossOp op{};
  op.rows = spec.batch;
  op.groups = kCritics;
  op.values = buffers_.values;
  op.target = buffers_.target_values;
  op.loss = scalars["loss/critic"];
  op.value_mean = scalars["critic/q_mean"];
  op.value_max = scalars["critic/q_max"];
  op.value_min = scalars["critic/q_min"];
  return op;
}

ActorLossOp FastSacPrograms::categorical_actor_loss() const {
  ActorLossOp op{};
  op.rows = spec.batch;
  op.groups = kCritics;
  op.support = support();
  op.value_stride = value_stride();
  op.logits = buffers_.logits;
  op.bias = critic_state.parameters + critic.head().bias;
  op.log_probability = buffers_.action.log_probability;
  op.log_alpha = log_alpha;
  op.logits_gradient = buffers_.values_gradient;
  op.loss = (*actor_statistics)["loss/actor"];
  op.entropy = (*actor_statistics)["policy/entropy"];
  return op;
}

ScalarActorGradientOp FastSacPrograms::scalar_actor_gradient() const {
  ScalarActorGradientOp op{};
  op.head = critic.scalar_head(critic_state.parameters, buffers_.critic);
  op.least_values = buffers_.least_values;
  op.gradient = critic.scalar_head_gradient(buffers_.critic);
  return op;
}

ScalarActorLossOp FastSacPrograms::scalar_actor_loss() const {
  ScalarActorLossOp op{};
  op.rows = spec.batch;
  op.least_values = buffers_.least_values;
  op.log_probability = buffers_.action.log_probability;
  op.log_alpha = log_alpha;
  op.loss = (*actor_statistics)["loss/actor"];
  op.entropy = (*actor_statistics)["policy/entropy"];
  return op;
}

void FastSacPrograms::record_actor(Program& program) {
  const LearnerStatistics& scalars = *actor_statistics;
  critic.record_forward(program, critic_state.parameters, buffers_.acting_critic_input,
                        critic.input_stride(), buffers_.critic, buffers_.logits);
  program.record(has_scalar_critics() ? Op(scalar_actor_gradient()) : Op(categorical_actor_loss()));
  critic.record_input_gradient(program, critic_state.parameters, buffers_.critic,
                               buffers_.values_gradient, first_gradient_column(),
                               critic.input_stride() - first_gradient_column(),
                               buffers_.action_gradient, critic_head_gradient());
  ActionGradientOp heads{};
  heads.rows = spec.batch;
  heads.actions = layout.action_dim;
  heads.heads_stride = actor.head_width();
  heads.heads = buffers_.action.heads;
  heads.bias = actor_state.parameters + actor.head().bias;
  heads.noise = buffers_.action.noise;
  heads.action_gradient = buffers_.action_gradient + (layout.critic_dim - first_gradient_column());
  heads.action_gradient_stride = critic.input_stride() - first_gradient_column();
  heads.log_alpha = log_alpha;
  heads.heads_gradient = buffers_.action_heads_gradient;
  program.record(heads);
  program.record(mean_deviation(heads));
  actor.record_backward(program, actor_state.parameters, buffers_.observation, actor.input_stride(),
                        buffers_.actor, buffers_.action_heads_gradient, actor_state.gradient);
  if (has_scalar_critics()) program.record(scalar_actor_loss());
  program.record(step_of(actor_state, scalars["loss/actor"], false, LearningRate::kActor));
  program.record(scalars.op(finite));
}

}  // namespace millrace

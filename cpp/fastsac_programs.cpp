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
      critic({rows.critic_dim + rows.action_dim, given.critic_hidden, given.atoms, kCritics}) {
  MR_CHECK(spec.algorithm == Algorithm::kFastSac, "these are the programs of another algorithm");
  add_state(actor.parameter_count(), actor.parameter_count(), critic.parameter_count(),
            critic.parameter_count());
  add_buffers();
  record_critic();
  record_actor();
}

void FastSacPrograms::initialise(u64 seed) {
  float* online = workspace.floats(critic_state.parameters);
  actor.initialise(workspace.floats(actor_state.parameters), seed, kActorTensors, true);
  critic.initialise(online, seed, kCriticTensors, false);
  std::memcpy(workspace.floats(target), online, critic_state.count * sizeof(float));
}

void FastSacPrograms::add_buffers() {
  const uint64_t rows = spec.batch;
  const uint64_t actions = layout.action_dim;
  const uint64_t logits = rows * kCritics * critic.head_width();
  const uint64_t heads = rows * actor.head_width();
  const uint64_t critic_input = rows * critic.input_stride();
  buffers_.observation = workspace.add_activation("batch/observation", rows * actor.input_stride());
  buffers_.critic_input = workspace.add_activation("batch/critic", critic_input);
  buffers_.next_critic_input = workspace.add_activation("batch/next_critic", critic_input);
  buffers_.action_heads = workspace.add_transient("action/heads", heads);
  buffers_.action_heads_gradient = workspace.add_activation("action/heads_gradient", heads);
  buffers_.noise = workspace.add_transient("action/noise", rows * actions);
  buffers_.log_probability = workspace.add_transient("action/log_probability", rows);
  buffers_.action_gradient = workspace.add_transient(
      "action/gradient", rows * (critic.input_stride() - first_gradient_column()));
  buffers_.logits = workspace.add_transient("value/logits", logits);
  buffers_.next_logits = workspace.add_transient("value/next_logits", logits);
  buffers_.target_distribution = workspace.add_transient("value/target", logits);
  buffers_.logits_gradient = workspace.add_activation("value/gradient", logits);
  buffers_.actor = actor.add_activations(workspace, "actor", spec.batch, true);
  buffers_.critic = critic.add_activations(workspace, "critic", spec.batch, true);
  buffers_.target_critic = critic.add_activations(workspace, "target", spec.batch, false);
}

// Writes the action behind the critic observation, where the critics read it.
SampleActionOp FastSacPrograms::sample(u32 first_normal, Operand critic_input) const {
  SampleActionOp op{};
  op.rows = spec.batch;
  op.actions = layout.action_dim;
  op.heads_stride = actor.head_width();
  op.heads = buffers_.action_heads;
  op.bias = actor_state.parameters + actor.head().bias;
  op.stream = kStreamLearnerNoise;
  op.first_normal = first_normal;
  op.action = critic_input + layout.critic_dim;
  op.action_stride = critic.input_stride();
  op.log_probability = buffers_.log_probability;
  op.noise = buffers_.noise;
  return op;
}

void FastSacPrograms::record_critic() {
  critic_program = std::make_unique<Program>("fastsac/critic", workspace);
  Program& program = *critic_program;
  const LearnerStatistics& scalars = *critic_statistics;

  program.record(unpack_observation(layout.next_observation(), buffers_.observation));
  program.record(unpack_critic(layout.next_critic(), buffers_.next_critic_input));
  program.record(unpack_critic(layout.critic(), buffers_.critic_input));
  program.record(unpack_action(buffers_.critic_input));
  actor.record_forward(program, actor_state.parameters, buffers_.observation, actor.input_stride(),
                       buffers_.actor, buffers_.action_heads);
  program.record(sample(0, buffers_.next_critic_input));
  record_critic_loss(program);
  record_gradient_norm(program, critic_state, scalars["loss/critic"], true);
  AdamWOp step = step_of(critic_state, LearningRate::kCritic);
  step.target = target;
  program.record(step);
  program.record(temperature_step(buffers_.log_probability));
  program.record(scalars.op(finite));
}

void FastSacPrograms::record_critic_loss(Program& program) {
  const LearnerStatistics& scalars = *critic_statistics;
  critic.record_forward(program, target, buffers_.next_critic_input, critic.input_stride(),
                        buffers_.target_critic, buffers_.next_logits);
  ProjectTargetOp project = projection();
  project.logits = buffers_.next_logits;
  project.bias = target + critic.head().bias;
  project.log_probability = buffers_.log_probability;
  project.target = buffers_.target_distribution;
  program.record(project);

  critic.record_forward(program, critic_state.parameters, buffers_.critic_input,
                        critic.input_stride(), buffers_.critic, buffers_.logits);
  CriticLossOp loss{};
  loss.rows = spec.batch;
  loss.groups = kCritics;
  loss.support = support();
  loss.value_stride = value_stride();
  loss.logits = buffers_.logits;
  loss.bias = critic_state.parameters + critic.head().bias;
  loss.target = buffers_.target_distribution;
  loss.logits_gradient = buffers_.logits_gradient;
  loss.loss = scalars["loss/critic"];
  loss.value_mean = scalars["critic/q_mean"];
  loss.value_max = scalars["critic/q_max"];
  loss.value_min = scalars["critic/q_min"];
  program.record(loss);
  critic.record_backward(program, critic_state.parameters, buffers_.critic_input,
                         critic.input_stride(), buffers_.critic, buffers_.logits_gradient,
                         critic_state.gradient);
}

void FastSacPrograms::record_actor() {
  actor_program = std::make_unique<Program>("fastsac/actor", workspace);
  Program& program = *actor_program;
  const LearnerStatistics& scalars = *actor_statistics;

  program.record(unpack_observation(layout.observation(), buffers_.observation));
  actor.record_forward(program, actor_state.parameters, buffers_.observation, actor.input_stride(),
                       buffers_.actor, buffers_.action_heads);
  // Normals behind those of the critic program's next action.
  program.record(sample(layout.action_dim, buffers_.critic_input));
  critic.record_forward(program, critic_state.parameters, buffers_.critic_input,
                        critic.input_stride(), buffers_.critic, buffers_.logits);
  ActorLossOp loss{};
  loss.rows = spec.batch;
  loss.groups = kCritics;
  loss.support = support();
  loss.value_stride = value_stride();
  loss.logits = buffers_.logits;
  loss.bias = critic_state.parameters + critic.head().bias;
  loss.log_probability = buffers_.log_probability;
  loss.log_alpha = log_alpha;
  loss.logits_gradient = buffers_.logits_gradient;
  loss.loss = scalars["loss/actor"];
  loss.entropy = scalars["policy/entropy"];
  program.record(loss);
  critic.record_input_gradient(program, critic_state.parameters, buffers_.critic,
                               buffers_.logits_gradient, first_gradient_column(),
                               critic.input_stride() - first_gradient_column(),
                               buffers_.action_gradient);
  ActionGradientOp heads{};
  heads.rows = spec.batch;
  heads.actions = layout.action_dim;
  heads.heads_stride = actor.head_width();
  heads.heads = buffers_.action_heads;
  heads.bias = actor_state.parameters + actor.head().bias;
  heads.noise = buffers_.noise;
  heads.action_gradient = buffers_.action_gradient + (layout.critic_dim - first_gradient_column());
  heads.action_gradient_stride = critic.input_stride() - first_gradient_column();
  heads.log_alpha = log_alpha;
  heads.heads_gradient = buffers_.action_heads_gradient;
  heads.mean_deviation = scalars["policy/std_mean"];
  program.record(heads);
  actor.record_backward(program, actor_state.parameters, buffers_.observation, actor.input_stride(),
                        buffers_.actor, buffers_.action_heads_gradient, actor_state.gradient);
  record_gradient_norm(program, actor_state, scalars["loss/actor"], false);
  program.record(step_of(actor_state, LearningRate::kActor));
  program.record(scalars.op(finite));
}

}  // namespace millrace

#include "fastsac_programs.h"

namespace millrace {
namespace {

constexpr int kCritics = 2;

}  // namespace

FastSacPrograms::FastSacPrograms(const LearnerSpec& given, const RowLayout& rows)
    : spec(given),
      layout(rows),
      policy_shape{rows.observation_dim, rows.action_dim, given.actor_hidden,
                   given.observation_normalizer, given.network},
      actor(policy_shape.network()),
      critic({rows.critic_dim + rows.action_dim, given.critic_hidden, critic_outputs(), kCritics,
              given.network}) {
  add_carriers();
  record_critic();
  record_actor();
}

FastSacPrograms::Trained FastSacPrograms::add_trained(const std::string& name, uint64_t count,
                                                      uint64_t extra) {
  Trained trained;
  trained.count = count;
  trained.parameters = workspace.add_floats(name + "/parameters", count + extra);
  trained.gradient = workspace.add_floats(name + "/gradient", count);
  trained.first_moment = workspace.add_floats(name + "/first_moment", count);
  trained.second_moment = workspace.add_floats(name + "/second_moment", count);
  trained.step = workspace.add(name + "/step", DType::kU64, 1);
  trained.clip = workspace.add_floats(name + "/clip", 1);
  return trained;
}

void FastSacPrograms::add_carriers() {
  const uint64_t rows = spec.batch;
  const uint64_t actions = layout.action_dim;
  const bool is_normalised = spec.observation_normalizer;
  const uint64_t normaliser = is_normalised ? 2 * layout.observation_dim : 0;
  actor_state = add_trained("actor", actor.parameter_count(), normaliser);
  critic_state = add_trained("critic", critic.parameter_count(), 0);
  target = workspace.add_floats("target/parameters", critic.parameter_count());
  log_alpha = workspace.add_floats("alpha/log", 1);
  alpha_first_moment = workspace.add_floats("alpha/first_moment", 1);
  alpha_second_moment = workspace.add_floats("alpha/second_moment", 1);
  alpha_step = workspace.add("alpha/step", DType::kU64, 1);
  alpha_gradient = workspace.add_floats("alpha/gradient", 1);
  finite = workspace.add_floats("finite", 1);
  if (is_normalised) {
    observation_mean = actor_state.parameters + actor.parameter_count();
    observation_scale = observation_mean + layout.observation_dim;
    critic_mean = workspace.add_floats("critic/mean", layout.critic_dim);
    critic_scale = workspace.add_floats("critic/scale", layout.critic_dim);
  }
  if (spec.symmetry) {
    const auto mirror = [&](const std::string& name, int width) {
      return Mirror{workspace.add("mirror/" + name + "/source", DType::kI32, width),
                    workspace.add_floats("mirror/" + name + "/sign", width)};
    };
    observation_mirror = mirror("observation", layout.observation_dim);
    critic_mirror = mirror("critic", layout.critic_dim);
    action_mirror = mirror("action", layout.action_dim);
  }
  critic_statistics = std::make_unique<LearnerStatistics>(
      workspace, "critic",
      std::vector<LearnerStatistics::Scalar>{{"loss/critic", Fold::kSum},
                                             {"loss/temperature", Fold::kSum},
                                             {"policy/temperature", Fold::kSum},
                                             {"critic/q_mean", Fold::kSum},
                                             {"critic/q_max", Fold::kMax},
                                             {"critic/q_min", Fold::kMin},
                                             {"critic/grad_norm", Fold::kSum}});
  actor_statistics = std::make_unique<LearnerStatistics>(
      workspace, "actor",
      std::vector<LearnerStatistics::Scalar>{{"loss/actor", Fold::kSum},
                                             {"policy/entropy", Fold::kSum},
                                             {"policy/std_mean", Fold::kSum},
                                             {"actor/grad_norm", Fold::kSum}});
  critic_state.norm = (*critic_statistics)["critic/grad_norm"];
  actor_state.norm = (*actor_statistics)["actor/grad_norm"];

  const uint64_t logits = rows * kCritics * critic_outputs();
  buffers_.observation =
      workspace.add_transient("batch/observation", rows * layout.observation_dim);
  buffers_.critic_input = workspace.add_transient("batch/critic", rows * critic_width());
  buffers_.next_critic_input = workspace.add_transient("batch/next_critic", rows * critic_width());
  buffers_.action_heads = workspace.add_transient("action/heads", rows * 2 * actions);
  buffers_.action_heads_gradient =
      workspace.add_transient("action/heads_gradient", rows * 2 * actions);
  buffers_.noise = workspace.add_transient("action/noise", rows * actions);
  buffers_.log_probability = workspace.add_transient("action/log_probability", rows);
  buffers_.action_gradient = workspace.add_transient("action/gradient", rows * actions);
  buffers_.logits = workspace.add_transient("value/logits", logits);
  buffers_.target_values =
      workspace.add_transient("value/target", has_scalar_critics() ? rows : logits);
  buffers_.logits_gradient = workspace.add_transient("value/gradient", logits);
  buffers_.actor = actor.add_activations(workspace, "actor", spec.batch, true);
  buffers_.critic = critic.add_activations(workspace, "critic", spec.batch, true);
}

UnpackOp FastSacPrograms::unpack(int column, int width, Operand to, int to_stride,
                                 const Mirror& mirror, Operand mean, Operand scale) const {
  UnpackOp op{};
  op.rows = spec.batch;
  op.source_rows = spec.gathered_rows();
  op.column = column;
  op.width = width;
  op.target = to;
  op.target_stride = to_stride;
  op.mirror_source = mirror.source;
  op.mirror_sign = mirror.sign;
  op.mean = mean;
  op.scale = scale;
  return op;
}

UnpackOp FastSacPrograms::unpack_observation(int column) const {
  return unpack(column, layout.observation_dim, buffers_.observation, layout.observation_dim,
                observation_mirror, observation_mean, observation_scale);
}

UnpackOp FastSacPrograms::unpack_critic(int column, Operand to) const {
  return unpack(column, layout.critic_dim, to, critic_width(), critic_mirror, critic_mean,
                critic_scale);
}

// Writes the action behind the critic observation, where the critics read it.
SampleActionOp FastSacPrograms::sample(u32 first_normal, Operand critic_input) const {
  SampleActionOp op{};
  op.rows = spec.batch;
  op.actions = layout.action_dim;
  op.heads = buffers_.action_heads;
  op.bias = actor_state.parameters + actor.head().bias;
  op.stream = kStreamLearnerNoise;
  op.first_normal = first_normal;
  op.action = critic_input + layout.critic_dim;
  op.action_stride = critic_width();
  op.log_probability = buffers_.log_probability;
  op.noise = buffers_.noise;
  return op;
}

void FastSacPrograms::record_step(Program& program, const Trained& trained, Operand loss,
                                  LearningRate rate, Operand moving_target) {
  GradientNormOp norm{};
  norm.count = trained.count;
  norm.gradient = trained.gradient;
  norm.loss = loss;
  norm.max_norm = spec.max_grad_norm;
  norm.opens = rate == LearningRate::kCritic;
  norm.norm = trained.norm;
  norm.clip = trained.clip;
  norm.finite = finite;
  program.record(norm);
  AdamWOp step{};
  step.count = trained.count;
  step.parameters = trained.parameters;
  step.gradient = trained.gradient;
  step.first_moment = trained.first_moment;
  step.second_moment = trained.second_moment;
  step.step = trained.step;
  step.clip = trained.clip;
  step.finite = finite;
  step.constants = constants(spec.weight_decay);
  step.rate = rate;
  step.target = moving_target;
  program.record(step);
}

void FastSacPrograms::record_critic() {
  critic_program = std::make_unique<Program>("fastsac/critic", workspace);
  Program& program = *critic_program;
  const LearnerStatistics& scalars = *critic_statistics;

  program.record(unpack_observation(layout.next_observation()));
  program.record(unpack_critic(layout.next_critic(), buffers_.next_critic_input));
  program.record(unpack_critic(layout.critic(), buffers_.critic_input));
  program.record(unpack(layout.action(), layout.action_dim,
                        buffers_.critic_input + layout.critic_dim, critic_width(), action_mirror,
                        Operand{}, Operand{}));
  actor.record_forward(program, actor_state.parameters, buffers_.observation,
                       layout.observation_dim, buffers_.actor, buffers_.action_heads);
  program.record(sample(0, buffers_.next_critic_input));
  record_critic_loss(program);
  record_step(program, critic_state, scalars["loss/critic"], LearningRate::kCritic, target);

  TemperatureOp temperature{};
  temperature.rows = spec.batch;
  temperature.log_probability = buffers_.log_probability;
  temperature.log_alpha = log_alpha;
  temperature.first_moment = alpha_first_moment;
  temperature.second_moment = alpha_second_moment;
  temperature.step = alpha_step;
  temperature.finite = finite;
  temperature.constants = constants(0.0f);
  temperature.target_entropy = -spec.target_entropy_ratio * layout.action_dim;
  temperature.loss = scalars["loss/temperature"];
  temperature.alpha = scalars["policy/temperature"];
  temperature.gradient = alpha_gradient;
  program.record(temperature);
  program.record(scalars.op(finite));
}

void FastSacPrograms::record_critic_loss(Program& program) {
  critic.record_forward(program, target, buffers_.next_critic_input, critic_width(),
                        buffers_.critic, buffers_.logits);
  program.record(has_scalar_critics() ? Op(scalar_target()) : Op(projected_target()));
  critic.record_forward(program, critic_state.parameters, buffers_.critic_input, critic_width(),
                        buffers_.critic, buffers_.logits);
  program.record(has_scalar_critics() ? Op(scalar_critic_loss()) : Op(categorical_critic_loss()));
  critic.record_backward(program, critic_state.parameters, buffers_.critic_input, critic_width(),
                         buffers_.critic, buffers_.logits_gradient, critic_state.gradient);
}

ProjectTargetOp FastSacPrograms::projected_target() const {
  ProjectTargetOp op{};
  op.rows = spec.batch;
  op.source_rows = spec.gathered_rows();
  op.groups = kCritics;
  op.support = support();
  op.reward_column = layout.reward();
  op.done_column = layout.done();
  op.truncated_column = layout.truncated();
  op.gamma = spec.gamma;
  op.logits = buffers_.logits;
  op.bias = target + critic.head().bias;
  op.log_probability = buffers_.log_probability;
  op.log_alpha = log_alpha;
  op.target = buffers_.target_values;
  return op;
}

ScalarTargetOp FastSacPrograms::scalar_target() const {
  ScalarTargetOp op{};
  op.rows = spec.batch;
  op.source_rows = spec.gathered_rows();
  op.groups = kCritics;
  op.reward_column = layout.reward();
  op.done_column = layout.done();
  op.truncated_column = layout.truncated();
  op.gamma = spec.gamma;
  op.values = buffers_.logits;
  op.bias = target + critic.head().bias;
  op.log_probability = buffers_.log_probability;
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
  op.logits = buffers_.logits;
  op.bias = critic_state.parameters + critic.head().bias;
  op.target = buffers_.target_values;
  op.logits_gradient = buffers_.logits_gradient;
  op.loss = scalars["loss/critic"];
  op.value_mean = scalars["critic/q_mean"];
  op.value_max = scalars["critic/q_max"];
  op.value_min = scalars["critic/q_min"];
  return op;
}

ScalarCriticLossOp FastSacPrograms::scalar_critic_loss() const {
  const LearnerStatistics& scalars = *critic_statistics;
  ScalarCriticLossOp op{};
  op.rows = spec.batch;
  op.groups = kCritics;
  op.values = buffers_.logits;
  op.bias = critic_state.parameters + critic.head().bias;
  op.target = buffers_.target_values;
  op.values_gradient = buffers_.logits_gradient;
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
  op.logits = buffers_.logits;
  op.bias = critic_state.parameters + critic.head().bias;
  op.log_probability = buffers_.log_probability;
  op.log_alpha = log_alpha;
  op.logits_gradient = buffers_.logits_gradient;
  op.loss = (*actor_statistics)["loss/actor"];
  op.entropy = (*actor_statistics)["policy/entropy"];
  return op;
}

ScalarActorLossOp FastSacPrograms::scalar_actor_loss() const {
  ScalarActorLossOp op{};
  op.rows = spec.batch;
  op.groups = kCritics;
  op.values = buffers_.logits;
  op.bias = critic_state.parameters + critic.head().bias;
  op.log_probability = buffers_.log_probability;
  op.log_alpha = log_alpha;
  op.values_gradient = buffers_.logits_gradient;
  op.loss = (*actor_statistics)["loss/actor"];
  op.entropy = (*actor_statistics)["policy/entropy"];
  return op;
}

void FastSacPrograms::record_actor() {
  actor_program = std::make_unique<Program>("fastsac/actor", workspace);
  Program& program = *actor_program;
  const LearnerStatistics& scalars = *actor_statistics;

  program.record(unpack_observation(layout.observation()));
  actor.record_forward(program, actor_state.parameters, buffers_.observation,
                       layout.observation_dim, buffers_.actor, buffers_.action_heads);
  // Normals behind those of the critic program's next action.
  program.record(sample(layout.action_dim, buffers_.critic_input));
  critic.record_forward(program, critic_state.parameters, buffers_.critic_input, critic_width(),
                        buffers_.critic, buffers_.logits);
  program.record(has_scalar_critics() ? Op(scalar_actor_loss()) : Op(categorical_actor_loss()));
  critic.record_input_gradient(program, critic_state.parameters, buffers_.critic,
                               buffers_.logits_gradient, layout.critic_dim, layout.action_dim,
                               buffers_.action_gradient);
  ActionGradientOp heads{};
  heads.rows = spec.batch;
  heads.actions = layout.action_dim;
  heads.heads = buffers_.action_heads;
  heads.bias = actor_state.parameters + actor.head().bias;
  heads.noise = buffers_.noise;
  heads.action_gradient = buffers_.action_gradient;
  heads.log_alpha = log_alpha;
  heads.heads_gradient = buffers_.action_heads_gradient;
  heads.mean_deviation = scalars["policy/std_mean"];
  program.record(heads);
  actor.record_backward(program, actor_state.parameters, buffers_.observation,
                        layout.observation_dim, buffers_.actor, buffers_.action_heads_gradient,
                        actor_state.gradient);
  record_step(program, actor_state, scalars["loss/actor"], LearningRate::kActor, Operand{});
  program.record(scalars.op(finite));
}

}  // namespace millrace

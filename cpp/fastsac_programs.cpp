#include "fastsac_programs.h"

namespace millrace {
namespace {

constexpr int kCritics = 2;

}  // namespace

FastSacPrograms::FastSacPrograms(const LearnerSpec& given, const RowLayout& rows)
    : spec(given),
      layout(rows),
      policy_shape{rows.observation_dim, rows.action_dim, given.actor_hidden,
                   given.observation_normalizer},
      actor(policy_shape.network()),
      critic({rows.critic_dim + rows.action_dim, given.critic_hidden, given.atoms, kCritics}) {
  add_carriers();
  record_critic();
  record_actor();
}

FastSacPrograms::Trained FastSacPrograms::add_trained(const std::string& name, uint64_t count,
                                                      uint64_t extra) {
  Trained trained;
  trained.count = count;
  trained.parameters = workspace.add_parameters(name + "/parameters", count + extra);
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
  target = workspace.add_parameters("target/parameters", critic.parameter_count());
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

  const uint64_t logits = rows * kCritics * critic.head_width();
  const uint64_t heads = rows * actor.head_width();
  buffers_.observation = workspace.add_activation("batch/observation", rows * actor.input_stride());
  buffers_.critic_input = workspace.add_activation("batch/critic", rows * critic.input_stride());
  buffers_.next_critic_input =
      workspace.add_activation("batch/next_critic", rows * critic.input_stride());
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
  return unpack(column, layout.observation_dim, buffers_.observation, actor.input_stride(),
                observation_mirror, observation_mean, observation_scale);
}

UnpackOp FastSacPrograms::unpack_critic(int column, Operand to) const {
  return unpack(column, layout.critic_dim, to, critic.input_stride(), critic_mirror, critic_mean,
                critic_scale);
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
                        buffers_.critic_input + layout.critic_dim, critic.input_stride(),
                        action_mirror, Operand{}, Operand{}));
  actor.record_forward(program, actor_state.parameters, buffers_.observation, actor.input_stride(),
                       buffers_.actor, buffers_.action_heads);
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
  const LearnerStatistics& scalars = *critic_statistics;
  critic.record_forward(program, target, buffers_.next_critic_input, critic.input_stride(),
                        buffers_.target_critic, buffers_.next_logits);
  ProjectTargetOp project{};
  project.rows = spec.batch;
  project.source_rows = spec.gathered_rows();
  project.groups = kCritics;
  project.support = support();
  project.value_stride = critic.head_width();
  project.reward_column = layout.reward();
  project.done_column = layout.done();
  project.truncated_column = layout.truncated();
  project.gamma = spec.gamma;
  project.logits = buffers_.next_logits;
  project.bias = target + critic.head().bias;
  project.log_probability = buffers_.log_probability;
  project.log_alpha = log_alpha;
  project.target = buffers_.target_distribution;
  program.record(project);

  critic.record_forward(program, critic_state.parameters, buffers_.critic_input,
                        critic.input_stride(), buffers_.critic, buffers_.logits);
  CriticLossOp loss{};
  loss.rows = spec.batch;
  loss.groups = kCritics;
  loss.support = support();
  loss.value_stride = critic.head_width();
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

  program.record(unpack_observation(layout.observation()));
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
  loss.value_stride = critic.head_width();
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
  record_step(program, actor_state, scalars["loss/actor"], LearningRate::kActor, Operand{});
  program.record(scalars.op(finite));
}

}  // namespace millrace

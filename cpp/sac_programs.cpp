#include "sac_programs.h"

#include "fastsac_programs.h"
#include "flashsac_programs.h"

namespace millrace {

SacPrograms::SacPrograms(const LearnerSpec& given, const RowLayout& rows)
    : spec(given), layout(rows), policy_shape(policy_shape_of(given, rows)) {}

std::unique_ptr<SacPrograms> SacPrograms::make(const LearnerSpec& spec, const RowLayout& layout) {
  if (spec.algorithm == Algorithm::kFlashSac) {
    return std::make_unique<FlashSacPrograms>(spec, layout);
  }
  return std::make_unique<FastSacPrograms>(spec, layout);
}

SacPrograms::Trained SacPrograms::add_trained(const std::string& name, uint64_t count,
                                              uint64_t span) {
  Trained trained;
  trained.count = count;
  trained.parameters = workspace.add_parameters(name + "/parameters", span);
  trained.gradient = workspace.add_floats(name + "/gradient", count);
  trained.first_moment = workspace.add_floats(name + "/first_moment", count);
  trained.second_moment = workspace.add_floats(name + "/second_moment", count);
  trained.step = workspace.add(name + "/step", DType::kU64, 1);
  trained.clip = workspace.add_floats(name + "/clip", 1);
  return trained;
}

void SacPrograms::add_state(uint64_t actor_count, uint64_t actor_span, uint64_t critic_count,
                            uint64_t critic_span) {
  const bool is_normalised = spec.observation_normalizer;
  policy_parameter_count_ = actor_span + (is_normalised ? 2 * layout.observation_dim : 0);
  actor_state = add_trained("actor", actor_count, policy_parameter_count_);
  critic_state = add_trained("critic", critic_count, critic_span);
  target = workspace.add_parameters("target/parameters", critic_span);
  log_alpha = workspace.add_floats("alpha/log", 1);
  alpha_first_moment = workspace.add_floats("alpha/first_moment", 1);
  alpha_second_moment = workspace.add_floats("alpha/second_moment", 1);
  alpha_step = workspace.add("alpha/step", DType::kU64, 1);
  alpha_gradient = workspace.add_floats("alpha/gradient", 1);
  finite = workspace.add_floats("finite", 1);
  if (is_normalised) {
    observation_mean = actor_state.parameters + actor_span;
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
  add_statistics();
}

void SacPrograms::add_statistics() {
  using Scalars = std::vector<LearnerStatistics::Scalar>;
  const Scalars temperature = {{"loss/temperature", Fold::kSum},
                               {"policy/temperature", Fold::kSum}};
  const bool is_actors = steps_temperature_with_actor();
  Scalars critic = {{"loss/critic", Fold::kSum}};
  if (!is_actors) critic.insert(critic.end(), temperature.begin(), temperature.end());
  critic.insert(critic.end(), {{"critic/q_mean", Fold::kSum},
                               {"critic/q_max", Fold::kMax},
                               {"critic/q_min", Fold::kMin},
                               {"critic/grad_norm", Fold::kSum}});
  Scalars actor = {{"loss/actor", Fold::kSum}};
  if (is_actors) actor.insert(actor.end(), temperature.begin(), temperature.end());
  actor.insert(actor.end(), {{"policy/entropy", Fold::kSum},
                             {"policy/std_mean", Fold::kSum},
                             {"actor/grad_norm", Fold::kSum}});
  critic_statistics = std::make_unique<LearnerStatistics>(workspace, "critic", std::move(critic));
  actor_statistics = std::make_unique<LearnerStatistics>(workspace, "actor", std::move(actor));
  critic_state.norm = (*critic_statistics)["critic/grad_norm"];
  actor_state.norm = (*actor_statistics)["actor/grad_norm"];
}

SacPrograms::Action SacPrograms::add_action(const std::string& name, uint64_t head_count) {
  const uint64_t rows = spec.batch;
  return {workspace.add_transient(name + "/heads", head_count),
          workspace.add_transient(name + "/noise", rows * layout.action_dim),
          workspace.add_transient(name + "/log_probability", rows)};
}

void SacPrograms::record_programs() {
  const std::string algorithm = to_string(spec.algorithm);
  critic_program = std::make_unique<Program>(algorithm + "/critic", workspace);
  record(*critic_program, false);
  whole_program = std::make_unique<Program>(algorithm + "/critic_and_actor", workspace);
  record(*whole_program, true);
}

UnpackPart SacPrograms::observation_part(int column, Operand to) const {
  return {column,
          layout.observation_dim,
          to,
          observation_stride(),
          observation_mirror.source,
          observation_mirror.sign,
          observation_mean,
          observation_scale};
}

UnpackPart SacPrograms::critic_part(int column, Operand to) const {
  return {column,          layout.critic_dim,    to,
          critic_stride(), critic_mirror.source, critic_mirror.sign,
          critic_mean,     critic_scale};
}

// Behind the critic observation, where the critics read it.
UnpackPart SacPrograms::action_part(Operand critic_input) const {
  return {layout.action(),
          layout.action_dim,
          critic_input + layout.critic_dim,
          critic_stride(),
          action_mirror.source,
          action_mirror.sign,
          Operand{},
          Operand{}};
}

UnpackOp SacPrograms::unpack(const Inputs& to, bool with_actor) const {
  UnpackOp op{spec.batch,
              spec.gathered_rows(),
              {observation_part(layout.next_observation(), to.next_observation),
               critic_part(layout.next_critic(), to.next_critic),
               critic_part(layout.critic(), to.critic), action_part(to.critic)}};
  if (with_actor) {
    op.parts.push_back(observation_part(layout.observation(), to.observation));
    op.parts.push_back(critic_part(layout.critic(), to.acting_critic));
  }
  return op;
}

AdamWOp SacPrograms::step_of(const Trained& trained, Operand loss, bool opens,
                             LearningRate rate) const {
  AdamWOp step{};
  step.count = trained.count;
  step.parameters = trained.parameters;
  step.gradient = trained.gradient;
  step.first_moment = trained.first_moment;
  step.second_moment = trained.second_moment;
  step.step = trained.step;
  step.loss = loss;
  step.max_norm = spec.max_grad_norm;
  step.opens = opens;
  step.norm = trained.norm;
  step.clip = trained.clip;
  step.finite = finite;
  step.constants = constants(spec.weight_decay);
  step.rate = rate;
  return step;
}

MeanDeviationOp SacPrograms::mean_deviation(const ActionGradientOp& of) const {
  MeanDeviationOp op{};
  op.rows = of.rows;
  op.actions = of.actions;
  op.heads_stride = of.heads_stride;
  op.density = of.density;
  op.heads = of.heads;
  op.bias = of.bias;
  op.mean_deviation = (*actor_statistics)["policy/std_mean"];
  return op;
}

TemperatureOp SacPrograms::temperature_step(Operand log_probability) const {
  const LearnerStatistics& scalars =
      steps_temperature_with_actor() ? *actor_statistics : *critic_statistics;
  TemperatureOp temperature{};
  temperature.rows = spec.batch;
  temperature.log_probability = log_probability;
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
  return temperature;
}

ProjectTargetOp SacPrograms::projection() const {
  ProjectTargetOp project{};
  project.rows = spec.batch;
  project.source_rows = spec.gathered_rows();
  project.groups = kCritics;
  project.support = support();
  project.value_stride = value_stride();
  project.reward_column = layout.reward();
  project.done_column = layout.done();
  project.truncated_column = layout.truncated();
  project.gamma = spec.gamma;
  project.log_alpha = log_alpha;
  return project;
}

}  // namespace millrace

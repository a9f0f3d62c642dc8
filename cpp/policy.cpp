#include "policy.h"

#include <algorithm>
#include <cstring>

#include "program_cpu.h"

namespace millrace {

void register_network(StateRegistry& registry, const Network& network, const std::string& name,
                      const std::string& suffix, float* parameters) {
  register_tensors(registry, network.tensors(), network.shape().groups, name, suffix, parameters);
}

Policy::Policy(PolicyShape shape, int max_rows)
    : shape_(shape),
      max_rows_(max_rows),
      network_(PolicyNetwork::make(shape)),
      parameter_count_(network_->parameter_count() +
                       (shape.is_normalised ? 2 * shape.observation_dim : 0)),
      normalizer_(shape.observation_dim) {
  const uint64_t rows = max_rows;
  parameters_ = workspace_.add_floats("policy/parameters", parameter_count_);
  input_ = workspace_.add_floats("policy/input", rows * network_->input_stride());
  heads_ = workspace_.add_floats("policy/heads", rows * network_->head_width());
  action_ = workspace_.add_floats("policy/action", rows * shape.action_dim);
  noise_ = workspace_.add_floats("policy/noise", rows * shape.action_dim);
  no_noise_ = workspace_.add_floats("policy/no_noise", rows * shape.action_dim);
  drawn_at_ = workspace_.add("policy/drawn_at", DType::kU64, rows);
  network_->add_carriers(workspace_, max_rows);
  workspace_.allocate();
}

void Policy::load(const float* parameters) {
  std::memcpy(workspace_.floats(parameters_), parameters, parameter_count_ * sizeof(float));
}

Program Policy::record(int rows, Noise noise) const {
  const bool is_deterministic = noise == Noise::kNone;
  Program program(is_deterministic ? "act_deterministic" : "act_exploring", workspace_);
  UnpackOp unpack{};
  unpack.rows = unpack.source_rows = rows;
  unpack.width = shape_.observation_dim;
  unpack.target_stride = network_->input_stride();
  unpack.target = input_;
  if (shape_.is_normalised) {
    unpack.mean = parameters_ + network_->parameter_count();
    unpack.scale = unpack.mean + shape_.observation_dim;
  }
  program.record(unpack);
  network_->record(program, parameters_, rows, input_, heads_);
  SampleActionOp sample{};
  sample.rows = rows;
  sample.actions = sample.action_stride = shape_.action_dim;
  sample.heads_stride = network_->head_width();
  sample.heads = heads_;
  sample.bias = parameters_ + network_->head_bias();
  sample.density = density_of(shape_.algorithm);
  sample.deterministic = is_deterministic;
  sample.stream = kStreamExploration;
  if (noise == Noise::kOfEachRow) sample.drawn_at = drawn_at_;
  sample.noise = is_deterministic ? no_noise_ : noise_;
  sample.action = action_;
  program.record(sample);
  return program;
}

void Policy::act(std::optional<Recorded>& recorded, Noise noise, const Arguments& arguments,
                 int count, float* actions) {
  MR_CHECK(count >= 1 && count <= max_rows_, "more observations than the policy was made for");
  if (!recorded || recorded->rows != count) recorded = {count, record(count, noise)};
  run_on_cpu(recorded->program, {workspace_, arguments});
  std::memcpy(actions, workspace_.floats(action_),
              static_cast<size_t>(count) * shape_.action_dim * sizeof(float));
}

void Policy::act_exploring(const float* observations, int count, uint64_t seed, uint64_t tick,
                           float* actions, const uint64_t* drawn_at) {
  Arguments arguments{};
  arguments.rows = observations;
  arguments.row_stride = shape_.observation_dim;
  arguments.seed = seed;
  arguments.tick = tick;
  if (drawn_at == nullptr) {
    act(exploring_, Noise::kOfTheTick, arguments, count, actions);
    return;
  }
  MR_CHECK(count >= 1 && count <= max_rows_, "more observations than the policy was made for");
  std::copy(drawn_at, drawn_at + count, workspace_.counters(drawn_at_));
  act(repeating_, Noise::kOfEachRow, arguments, count, actions);
}

void Policy::act_deterministic(const float* observations, int count, float* actions) {
  Arguments arguments{};
  arguments.rows = observations;
  arguments.row_stride = shape_.observation_dim;
  act(deterministic_, Noise::kNone, arguments, count, actions);
}

void Policy::register_state(StateRegistry& registry) {
  register_tensors(registry, network_->tensors(), 1, "actor", "", workspace_.floats(parameters_));
  if (shape_.is_normalised) normalizer_.register_state(registry, "normalizer/observation");
}

void Policy::state_restored() {
  if (!shape_.is_normalised) return;
  float* mean = workspace_.floats(parameters_) + network_->parameter_count();
  normalizer_.write(mean, mean + shape_.observation_dim);
}

}  // namespace millrace

#include "policy.h"

#include <cstring>

#include "program_cpu.h"

namespace millrace {

void register_network(StateRegistry& registry, const Network& network, const std::string& name,
                      const std::string& suffix, float* parameters) {
  const int groups = network.shape().groups;
  for (int g = 0; g < groups; ++g) {
    const std::string prefix = groups == 1 ? name + "/" : name + "/" + std::to_string(g) + "/";
    for (const Network::Tensor& tensor : network.tensors()) {
      float* values = parameters + tensor.offset + g * tensor.distance;
      if (tensor.shape.size() == 2) {
        registry.add_matrix(prefix + tensor.name + suffix, tensor.shape, tensor.row_stride, values);
      } else {
        registry.add(prefix + tensor.name + suffix, DType::kF32, tensor.shape, values);
      }
    }
  }
}

Policy::Policy(PolicyShape shape, int max_rows)
    : shape_(shape),
      max_rows_(max_rows),
      network_(shape.network()),
      parameter_count_(network_.parameter_count() +
                       (shape.is_normalised ? 2 * shape.observation_dim : 0)),
      normalizer_(shape.observation_dim) {
  const uint64_t rows = max_rows;
  parameters_ = workspace_.add_floats("policy/parameters", parameter_count_);
  input_ = workspace_.add_floats("policy/input", rows * network_.input_stride());
  heads_ = workspace_.add_floats("policy/heads", rows * network_.head_width());
  action_ = workspace_.add_floats("policy/action", rows * shape.action_dim);
  noise_ = workspace_.add_floats("policy/noise", rows * shape.action_dim);
  no_noise_ = workspace_.add_floats("policy/no_noise", rows * shape.action_dim);
  activations_ = network_.add_activations(workspace_, "policy", max_rows, false);
  workspace_.allocate();
}

void Policy::load(const float* parameters) {
  std::memcpy(workspace_.floats(parameters_), parameters, parameter_count_ * sizeof(float));
}

Program Policy::record(int rows, bool deterministic) const {
  Program program(deterministic ? "act_deterministic" : "act_exploring", workspace_);
  UnpackOp unpack{};
  unpack.rows = unpack.source_rows = rows;
  unpack.width = shape_.observation_dim;
  unpack.target_stride = network_.input_stride();
  unpack.target = input_;
  if (shape_.is_normalised) {
    unpack.mean = parameters_ + network_.parameter_count();
    unpack.scale = unpack.mean + shape_.observation_dim;
  }
  program.record(unpack);
  Network::Activations activations = activations_;
  activations.rows = rows;
  network_.record_forward(program, parameters_, input_, network_.input_stride(), activations,
                          heads_);
  SampleActionOp sample{};
  sample.rows = rows;
  sample.actions = sample.action_stride = shape_.action_dim;
  sample.heads_stride = network_.head_width();
  sample.heads = heads_;
  sample.bias = parameters_ + network_.head().bias;
  sample.deterministic = deterministic;
  sample.stream = kStreamExploration;
  sample.noise = deterministic ? no_noise_ : noise_;
  sample.action = action_;
  program.record(sample);
  return program;
}

void Policy::act(std::optional<Recorded>& recorded, bool deterministic, const Arguments& arguments,
                 int count, float* actions) {
  MR_CHECK(count >= 1 && count <= max_rows_, "more observations than the policy was made for");
  if (!recorded || recorded->rows != count) recorded = {count, record(count, deterministic)};
  run_on_cpu(recorded->program, {workspace_, arguments});
  std::memcpy(actions, workspace_.floats(action_),
              static_cast<size_t>(count) * shape_.action_dim * sizeof(float));
}

void Policy::act_exploring(const float* observations, int count, uint64_t seed, uint64_t tick,
                           float* actions) {
  Arguments arguments{};
  arguments.rows = observations;
  arguments.row_stride = shape_.observation_dim;
  arguments.seed = seed;
  arguments.tick = tick;
  act(exploring_, false, arguments, count, actions);
}

void Policy::act_deterministic(const float* observations, int count, float* actions) {
  Arguments arguments{};
  arguments.rows = observations;
  arguments.row_stride = shape_.observation_dim;
  act(deterministic_, true, arguments, count, actions);
}

void Policy::register_state(StateRegistry& registry) {
  register_network(registry, network_, "actor", "", workspace_.floats(parameters_));
  if (shape_.is_normalised) normalizer_.register_state(registry, "normalizer/observation");
}

void Policy::state_restored() {
  if (!shape_.is_normalised) return;
  float* mean = workspace_.floats(parameters_) + network_.parameter_count();
  normalizer_.write(mean, mean + shape_.observation_dim);
}

}  // namespace millrace

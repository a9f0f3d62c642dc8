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
      registry.add(prefix + tensor.name + suffix, DType::kF32, tensor.shape,
                   parameters + tensor.offset + g * tensor.distance);
    }
  }
}

PolicyPrograms::PolicyPrograms(PolicyShape of, int rows_at_most)
    : shape(of),
      max_rows(rows_at_most),
      network(of.network()),
      parameter_count(network.parameter_count() + (of.is_normalised ? 2 * of.observation_dim : 0)) {
  const uint64_t rows = max_rows;
  parameters = workspace.add_floats("policy/parameters", parameter_count);
  input = workspace.add_floats("policy/input", rows * shape.observation_dim);
  heads = workspace.add_floats("policy/heads", rows * 2 * shape.action_dim);
  action = workspace.add_floats("policy/action", rows * shape.action_dim);
  noise = workspace.add_floats("policy/noise", rows * shape.action_dim);
  no_noise = workspace.add_floats("policy/no_noise", rows * shape.action_dim);
  activations = network.add_activations(workspace, "policy", max_rows, false);
}

Program PolicyPrograms::record(int rows, bool deterministic) const {
  Program program(deterministic ? "act_deterministic" : "act_exploring", workspace);
  UnpackOp unpack{};
  unpack.rows = unpack.source_rows = rows;
  unpack.width = unpack.target_stride = shape.observation_dim;
  unpack.target = input;
  if (shape.is_normalised) {
    unpack.mean = parameters + network.parameter_count();
    unpack.scale = unpack.mean + shape.observation_dim;
  }
  program.record(unpack);
  Network::Activations evaluated = activations;
  evaluated.rows = rows;
  network.record_forward(program, parameters, input, shape.observation_dim, evaluated, heads);
  SampleActionOp sample{};
  sample.rows = rows;
  sample.actions = sample.action_stride = shape.action_dim;
  sample.heads = heads;
  sample.bias = parameters + network.head().bias;
  sample.deterministic = deterministic;
  sample.stream = kStreamExploration;
  sample.noise = deterministic ? no_noise : noise;
  sample.action = action;
  program.record(sample);
  return program;
}

Policy::Policy(PolicyShape shape, int max_rows)
    : programs_(shape, max_rows), normalizer_(shape.observation_dim) {
  programs_.workspace.allocate();
}

void Policy::load(const float* parameters) {
  std::memcpy(programs_.workspace.floats(programs_.parameters), parameters,
              programs_.parameter_count * sizeof(float));
}

void Policy::act(std::optional<Recorded>& recorded, bool deterministic, const Arguments& arguments,
                 int count, float* actions) {
  MR_CHECK(count >= 1 && count <= programs_.max_rows,
           "more observations than the policy was made for");
  if (!recorded || recorded->rows != count) {
    recorded = {count, programs_.record(count, deterministic)};
  }
  run_on_cpu(recorded->program, {programs_.workspace, arguments});
  std::memcpy(actions, programs_.workspace.floats(programs_.action),
              static_cast<size_t>(count) * programs_.shape.action_dim * sizeof(float));
}

void Policy::act_exploring(const float* observations, int count, uint64_t seed, uint64_t tick,
                           float* actions) {
  Arguments arguments{};
  arguments.rows = observations;
  arguments.row_stride = programs_.shape.observation_dim;
  arguments.seed = seed;
  arguments.tick = tick;
  act(exploring_, false, arguments, count, actions);
}

void Policy::act_deterministic(const float* observations, int count, float* actions) {
  Arguments arguments{};
  arguments.rows = observations;
  arguments.row_stride = programs_.shape.observation_dim;
  act(deterministic_, true, arguments, count, actions);
}

void Policy::register_state(StateRegistry& registry) {
  register_network(registry, programs_.network, "actor", "",
                   programs_.workspace.floats(programs_.parameters));
  if (programs_.shape.is_normalised) normalizer_.register_state(registry, "normalizer/observation");
}

void Policy::state_restored() {
  if (!programs_.shape.is_normalised) return;
  float* mean =
      programs_.workspace.floats(programs_.parameters) + programs_.network.parameter_count();
  normalizer_.write(mean, mean + programs_.shape.observation_dim);
}

}  // namespace millrace

#include "policy.h"

#include <algorithm>
#include <cstring>

#include "program_cpu.h"

namespace millrace {

void register_network(StateRegistry& registry, const Network& network, const std::string& name,
                      const std::string& suffix, float* parameters) {
  register_tensors(registry, network.tensors(), network.shape().groups, name, suffix, parameters);
}

PolicyPrograms::PolicyPrograms(PolicyShape of, int rows_at_most)
    : shape(of),
      max_rows(rows_at_most),
      network(PolicyNetwork::make(of)),
      parameter_count(network->parameter_count() +
                      (of.is_normalised ? 2 * of.observation_dim : 0)) {
  const uint64_t rows = max_rows;
  parameters = workspace.add_floats("policy/parameters", parameter_count);
  input = workspace.add_floats("policy/input", rows * network->input_stride());
  heads = workspace.add_floats("policy/heads", rows * network->head_width());
  action = workspace.add_floats("policy/action", rows * shape.action_dim);
  noise = workspace.add_floats("policy/noise", rows * shape.action_dim);
  no_noise = workspace.add_floats("policy/no_noise", rows * shape.action_dim);
  drawn_at = workspace.add("policy/drawn_at", DType::kU64, rows);
  network->add_carriers(workspace, max_rows);
}

Program PolicyPrograms::record(int rows, Noise draws) const {
  const bool is_deterministic = draws == Noise::kNone;
  Program program(is_deterministic ? "act_deterministic" : "act_exploring", workspace);
  UnpackPart observation{};
  observation.width = shape.observation_dim;
  observation.target_stride = network->input_stride();
  observation.target = input;
  if (shape.is_normalised) {
    observation.mean = parameters + network->parameter_count();
    observation.scale = observation.mean + shape.observation_dim;
  }
  program.record(UnpackOp{rows, rows, {observation}});
  network->record(program, parameters, rows, input, heads);
  SampleActionOp sample{};
  sample.rows = rows;
  sample.actions = sample.action_stride = shape.action_dim;
  sample.heads_stride = network->head_width();
  sample.heads = heads;
  sample.bias = parameters + network->head_bias();
  sample.density = density_of(shape.algorithm);
  sample.deterministic = is_deterministic;
  sample.stream = kStreamExploration;
  if (draws == Noise::kOfEachRow) sample.drawn_at = drawn_at;
  sample.noise = is_deterministic ? no_noise : noise;
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

void Policy::act(std::optional<Recorded>& recorded, Noise noise, const Arguments& arguments,
                 int count, float* actions) {
  MR_CHECK(count >= 1 && count <= programs_.max_rows,
           "more observations than the policy was made for");
  if (!recorded || recorded->rows != count) recorded = {count, programs_.record(count, noise)};
  run_on_cpu(recorded->program, {programs_.workspace, arguments});
  std::memcpy(actions, programs_.workspace.floats(programs_.action),
              static_cast<size_t>(count) * programs_.shape.action_dim * sizeof(float));
}

void Policy::act_exploring(const float* observations, int count, uint64_t seed, uint64_t tick,
                           float* actions, const uint64_t* drawn_at) {
  Arguments arguments{};
  arguments.rows = observations;
  arguments.row_stride = programs_.shape.observation_dim;
  arguments.seed = seed;
  arguments.tick = tick;
  if (drawn_at == nullptr) {
    act(exploring_, Noise::kOfTheTick, arguments, count, actions);
    return;
  }
  MR_CHECK(count >= 1 && count <= programs_.max_rows,
           "more observations than the policy was made for");
  std::copy(drawn_at, drawn_at + count, programs_.workspace.counters(programs_.drawn_at));
  act(repeating_, Noise::kOfEachRow, arguments, count, actions);
}

void Policy::act_deterministic(const float* observations, int count, float* actions) {
  Arguments arguments{};
  arguments.rows = observations;
  arguments.row_stride = programs_.shape.observation_dim;
  act(deterministic_, Noise::kNone, arguments, count, actions);
}

void Policy::register_state(StateRegistry& registry) {
  register_tensors(registry, programs_.network->tensors(), 1, "actor", "",
                   programs_.workspace.floats(programs_.parameters));
  if (programs_.shape.is_normalised) normalizer_.register_state(registry, "normalizer/observation");
}

void Policy::state_restored() {
  if (!programs_.shape.is_normalised) return;
  float* mean =
      programs_.workspace.floats(programs_.parameters) + programs_.network->parameter_count();
  normalizer_.write(mean, mean + programs_.shape.observation_dim);
}

}  // namespace millrace

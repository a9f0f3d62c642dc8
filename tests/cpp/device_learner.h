// For tests of learners whose programs run on a backend: one with the memory that its rows lie in,
// and training with arguments that vary from step to step.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "each_backend.h"
#include "fastsac_fixture.h"
#include "graph_backends.h"

namespace millrace {

constexpr uint64_t kDeviceSeed = 77;

// A learner on a backend and the memory that its rows lie in.
template <class AnyLearner>
struct DeviceLearner {
  DeviceLearner(const std::string& name, const LearnerSpec& spec, const RowLayout& layout,
                const RowMirror& mirror = {}, Precision precision = Precision::kFp32)
      : backend(graph_backend_api(name)),
        stream(backend),
        transfer(backend),
        width(layout.width()),
        rows(backend, Memory::Kind::kDevice,
             static_cast<uint64_t>(spec.gathered_rows() * width) * sizeof(float)),
        learner(spec, layout, mirror, kDeviceSeed, backend, stream, precision) {}

  void update(const std::vector<float>& batch, uint64_t index) {
    settle();  // the last update reads the rows
    transfer.write(rows.floats(), batch);
    learner.update(rows.floats(), width, index);
  }
  void settle() { learner.policy_parameters(); }
  std::map<std::string, std::vector<float>> tensors() {
    learner.fetch_state();
    std::map<std::string, std::vector<float>> all;
    for (const auto& [name, tensor] : tensors_of(learner)) {
      if (tensor.dtype == DType::kF32) all[name] = floats_of(tensor);
    }
    return all;
  }

  Backend backend;
  Stream stream;
  Transfer transfer;
  const int width;
  Memory rows;
  AnyLearner learner;
};

// The same state in both; networks off their initial values.
template <class AnyLearner>
void make_equal(AnyLearner& host, DeviceLearner<AnyLearner>& device) {
  randomise_networks(host, 5);
  randomise_networks(device.learner, 5);
  device.learner.state_restored();
}

inline double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0, length = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    squares += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    length += double{b[i]} * b[i];
  }
  return squares == 0 ? 0 : std::sqrt(squares / length);
}

// Everything that an argument block can vary, at one step.
inline Arguments varied(uint64_t step, const float* rows, int width) {
  Arguments arguments{};
  arguments.rows = rows;
  arguments.row_stride = static_cast<u64>(width);
  arguments.seed = 3 + step / 5;
  arguments.tick = 1000 + step;
  const float phase = 1.0f + 0.1f * static_cast<float>(step);
  arguments.actor_learning_rate = 1e-3f * phase;
  arguments.critic_learning_rate = 2e-3f / phase;
  arguments.alpha_learning_rate = 3e-3f * phase;
  arguments.target_rate = 0.05f * phase;
  arguments.reward_scale = 1.0f / phase;
  return arguments;
}

// Parameters after some steps whose arguments vary, but for what `freeze` puts back.
using Freeze = void (*)(Arguments& arguments, const Arguments& first);
template <class AnyLearner>
std::map<std::string, std::vector<float>> trained(const LearnerSpec& spec, const RowLayout& layout,
                                                  const std::string& backend, bool as_graph,
                                                  Freeze freeze) {
  constexpr uint64_t kSteps = 12;
  DeviceLearner<AnyLearner> device(backend, spec, layout);
  const std::vector<float> batch = random_rows(layout, spec.batch, 4);
  device.transfer.write(device.rows.floats(), batch);
  std::unique_ptr<Graph> graph;
  if (as_graph) {
    graph = std::make_unique<Graph>(device.backend, device.stream,
                                    [&] { device.learner.submit(true); });
  }
  const Arguments first = varied(0, device.rows.floats(), device.width);
  for (uint64_t step = 0; step < kSteps; ++step) {
    Arguments arguments = varied(step, device.rows.floats(), device.width);
    freeze(arguments, first);
    device.learner.device()->set_arguments(arguments);
    if (as_graph) {
      device.stream.launch(*graph);
    } else {
      device.learner.submit(true);
    }
  }
  return device.tensors();
}

inline void freeze_nothing(Arguments&, const Arguments&) {}

// Each puts back one argument that matters.
inline std::vector<Freeze> freezes() {
  return {[](Arguments& arguments, const Arguments& first) { arguments.seed = first.seed; },
          [](Arguments& arguments, const Arguments& first) { arguments.tick = first.tick; },
          [](Arguments& arguments, const Arguments& first) {
            arguments.actor_learning_rate = first.actor_learning_rate;
          },
          [](Arguments& arguments, const Arguments& first) {
            arguments.critic_learning_rate = first.critic_learning_rate;
          },
          [](Arguments& arguments, const Arguments& first) {
            arguments.alpha_learning_rate = first.alpha_learning_rate;
          },
          [](Arguments& arguments, const Arguments& first) {
            arguments.target_rate = first.target_rate;
          },
          [](Arguments& arguments, const Arguments& first) {
            arguments.reward_scale = first.reward_scale;
          }};
}

}  // namespace millrace

// Tests for cpp/learner_fastsac.cpp with its programs on a backend: the same learning as on the
// host, whether launched eagerly or replayed as a graph.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "each_backend.h"
#include "fastsac_fixture.h"
#include "graph_backends.h"

namespace millrace {
namespace {

constexpr uint64_t kSeed = 77;

// Widths of no whole number of warps or tiles, and the walking task's vectors.
LearnerSpec medium_spec() {
  LearnerSpec spec = small_spec();
  spec.batch = 96;
  spec.actor_hidden = 72;
  spec.critic_hidden = 104;
  spec.atoms = 101;
  spec.policy_frequency = 1;
  return spec;
}

// Plain SAC.
LearnerSpec plain_spec() {
  LearnerSpec spec = medium_spec();
  spec.network = NetworkBody::kPlain;
  spec.critic = CriticKind::kScalar;
  return spec;
}

RowLayout medium_layout() { return {98, 29, 101}; }

// A learner on a backend and the memory that its rows lie in.
struct DeviceLearner {
  DeviceLearner(const std::string& name, const LearnerSpec& spec, const RowLayout& layout,
                const RowMirror& mirror = {}, Precision precision = Precision::kFp32)
      : backend(graph_backend_api(name)),
        stream(backend),
        transfer(backend),
        width(layout.width()),
        rows(backend, Memory::Kind::kDevice,
             static_cast<uint64_t>(spec.gathered_rows() * width) * sizeof(float)),
        learner(spec, layout, mirror, kSeed, backend, stream, precision) {}

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
  LearnerFastSac learner;
};

// The same state in both; networks off their initial values.
void make_equal(LearnerFastSac& host, DeviceLearner& device) {
  randomise_networks(host, 5);
  randomise_networks(device.learner, 5);
  device.learner.state_restored();
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0, length = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    squares += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    length += double{b[i]} * b[i];
  }
  return squares == 0 ? 0 : std::sqrt(squares / length);
}

// Named views of the gradients that the host's memory holds.
std::map<std::string, std::vector<float>> gradients_of(const LearnerFastSac& learner) {
  const FastSacPrograms& p = learner.programs();
  StateRegistry registry;
  register_network(registry, p.actor, "actor", "", p.workspace.floats(p.actor_state.gradient));
  register_network(registry, p.critic, "critic", "", p.workspace.floats(p.critic_state.gradient));
  std::map<std::string, std::vector<float>> gradients;
  for (const StateTensor& tensor : registry.tensors()) gradients[tensor.name] = floats_of(tensor);
  return gradients;
}

class LearnerDeviceTest : public testing::TestWithParam<std::string> {};

MR_ON_EACH_BACKEND(LearnerDeviceTest);

void expect_equal_gradients(const std::string& backend, LearnerSpec spec, bool has_extras) {
  spec.symmetry = spec.observation_normalizer = has_extras;
  spec.alpha_init = 0.2f;  // large, so that the entropy's part shows
  spec.actor_lr = spec.critic_lr = spec.alpha_lr = 0.0f;
  const RowLayout layout = has_extras ? small_layout() : medium_layout();
  const RowMirror mirror = has_extras ? small_mirror() : RowMirror{};
  LearnerFastSac host(spec, layout, mirror, kSeed);
  DeviceLearner device(backend, spec, layout, mirror);
  make_equal(host, device);
  const std::vector<float> rows = random_rows(layout, spec.gathered_rows(), 9);
  const auto count = static_cast<uint64_t>(spec.gathered_rows());
  host.normalise_from(rows.data(), count, layout.width());
  device.learner.normalise_from(rows.data(), count, layout.width());
  host.update(rows.data(), layout.width(), 12345);
  device.update(rows, 12345);
  device.learner.fetch_state();
  const auto expected = gradients_of(host), found = gradients_of(device.learner);
  ASSERT_EQ(found.size(), (spec.network == NetworkBody::kPlain ? 8u : 14u) * 3);
  for (const auto& [name, gradient] : found) {
    EXPECT_LE(relative_distance(gradient, expected.at(name)), 1e-5) << name;
  }
}

TEST_P(LearnerDeviceTest, EveryGradientOfOneUpdateIsTheHosts) {
  expect_equal_gradients(GetParam(), medium_spec(), false);
  expect_equal_gradients(GetParam(), small_spec(), true);
}

TEST_P(LearnerDeviceTest, EveryGradientOfPlainSacIsTheHosts) {
  LearnerSpec spec = plain_spec();
  expect_equal_gradients(GetParam(), spec, false);
  spec.network = NetworkBody::kFastSac;  // scalar critics with norms
  expect_equal_gradients(GetParam(), spec, false);
  spec = small_spec();
  spec.network = NetworkBody::kPlain;
  spec.critic = CriticKind::kScalar;
  expect_equal_gradients(GetParam(), spec, true);
}

void expect_equal_training(const std::string& backend, const LearnerSpec& spec) {
  const RowLayout layout = medium_layout();
  LearnerFastSac host(spec, layout, {}, kSeed);
  DeviceLearner device(backend, spec, layout);
  for (uint64_t i = 0; i < 100; ++i) {
    const std::vector<float> rows = random_rows(layout, spec.batch, 100 + i);
    host.update(rows.data(), layout.width(), i);
    device.update(rows, i);
    const nlohmann::json expected = host.take_statistics();
    const nlohmann::json found = device.learner.take_statistics();
    ASSERT_EQ(found.size(), expected.size());
    for (const char* name : {"loss/critic", "loss/actor", "loss/temperature"}) {
      const double value = expected[name];
      ASSERT_NEAR(found[name], value, 1e-3 * std::max(1.0, std::abs(value))) << name << " " << i;
    }
    ASSERT_EQ(found["learner/nonfinite_updates"], 0);
  }
  const auto found = device.tensors();
  for (const auto& [name, tensor] : tensors_of(host)) {
    if (!is_network_tensor(name)) continue;
    EXPECT_LE(relative_distance(found.at(name), floats_of(tensor)), 2e-3) << name;
  }
}

TEST_P(LearnerDeviceTest, LossesAndParametersStayTheHostsForAHundredUpdates) {
  expect_equal_training(GetParam(), medium_spec());
}

TEST_P(LearnerDeviceTest, LossesAndParametersOfPlainSacStayTheHostsForAHundredUpdates) {
  expect_equal_training(GetParam(), plain_spec());
}

// Bounds of the reduced precisions: those of their operands' rounding, through a whole update.
TEST_P(LearnerDeviceTest, ReducedPrecisionsFollowTheHostsGradient) {
  for (const Precision precision : {Precision::kTf32, Precision::kBf16}) {
    if ((graph_backend_api(GetParam()).precisions & precision_bit(precision)) == 0) continue;
    SCOPED_TRACE(to_string(precision));
    const LearnerSpec spec = medium_spec();
    const RowLayout layout = medium_layout();
    LearnerFastSac host(spec, layout, {}, kSeed);
    DeviceLearner device(GetParam(), spec, layout, {}, precision);
    make_equal(host, device);
    const std::vector<float> rows = random_rows(layout, spec.batch, 9);
    host.update(rows.data(), layout.width(), 0);
    device.update(rows, 0);
    device.learner.fetch_state();
    const auto expected = gradients_of(host), found = gradients_of(device.learner);
    for (const auto& [name, gradient] : found) {
      EXPECT_LE(relative_distance(gradient, expected.at(name)),
                precision == Precision::kTf32 ? 1e-2 : 1e-1)
          << name;
    }
  }
}

// Everything that an argument block can vary, at one step.
Arguments varied(uint64_t step, const float* rows, int width) {
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
  return arguments;
}

// Parameters after some steps whose arguments vary, but for what `freeze` puts back.
using Freeze = void (*)(Arguments& arguments, const Arguments& first);
std::map<std::string, std::vector<float>> trained(const std::string& backend, bool as_graph,
                                                  Freeze freeze,
                                                  const LearnerSpec& spec = medium_spec()) {
  constexpr uint64_t kSteps = 12;
  const RowLayout layout = medium_layout();
  DeviceLearner device(backend, spec, layout);
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

void freeze_nothing(Arguments&, const Arguments&) {}

class LearnerGraphTest : public testing::TestWithParam<std::string> {};

MR_ON_EACH_GRAPH_BACKEND(LearnerGraphTest);

TEST_P(LearnerGraphTest, AGraphReplaysTheBitsOfEagerRunsWithEveryArgumentVarying) {
  const auto eager = trained(GetParam(), false, freeze_nothing);
  EXPECT_EQ(trained(GetParam(), true, freeze_nothing), eager);
  EXPECT_EQ(trained(GetParam(), false, freeze_nothing), eager) << "a run repeats itself";
}

TEST_P(LearnerGraphTest, AGraphOfPlainSacReplaysTheBitsOfEagerRuns) {
  EXPECT_EQ(trained(GetParam(), true, freeze_nothing, plain_spec()),
            trained(GetParam(), false, freeze_nothing, plain_spec()));
}

// So the test above sees a graph that holds on to any of them.
TEST_P(LearnerDeviceTest, EveryArgumentMatters) {
  const bool as_graph = graph_backend_api(GetParam()).has_graphs != 0;
  const auto expected = trained(GetParam(), as_graph, freeze_nothing);
  const std::vector<Freeze> freezes = {
      [](Arguments& arguments, const Arguments& first) { arguments.seed = first.seed; },
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
      }};
  for (size_t i = 0; i < freezes.size(); ++i) {
    EXPECT_NE(trained(GetParam(), as_graph, freezes[i]), expected) << "argument " << i;
  }
}

TEST_P(LearnerDeviceTest, AnUpdateThatIsNotFiniteChangesNothingAndIsCounted) {
  const LearnerSpec spec = medium_spec();
  const RowLayout layout = medium_layout();
  for (const float poison :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    DeviceLearner device(GetParam(), spec, layout);
    std::vector<float> rows = random_rows(layout, spec.batch, 1);
    device.update(rows, 0);
    device.learner.take_statistics();
    const auto before = device.tensors();
    std::vector<float> poisoned = rows;
    poisoned[static_cast<size_t>(3 * layout.width() + layout.reward())] = poison;
    device.update(poisoned, 1);
    for (const auto& [name, values] : device.tensors()) {
      if (!is_network_tensor(name)) continue;
      EXPECT_EQ(values, before.at(name)) << name;
    }
    EXPECT_EQ(device.learner.take_statistics()["learner/nonfinite_updates"], 2);
    device.update(rows, 2);
    EXPECT_NE(device.tensors(), before);
    EXPECT_EQ(device.learner.take_statistics()["learner/nonfinite_updates"], 0);
  }
}

TEST_P(LearnerDeviceTest, ResumesBitForBitFromItsTensors) {
  LearnerSpec spec = small_spec();
  spec.observation_normalizer = true;
  spec.policy_frequency = 2;
  const RowLayout layout = small_layout();
  DeviceLearner whole(GetParam(), spec, layout), resumed(GetParam(), spec, layout);
  const auto run = [&](DeviceLearner& device, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i) {
      const std::vector<float> rows = random_rows(layout, spec.batch, 100 + i);
      device.learner.normalise_from(rows.data(), static_cast<uint64_t>(spec.batch), layout.width());
      device.update(rows, i);
    }
  };
  run(whole, 0, 7);
  whole.learner.fetch_state();
  const auto from = tensors_of(whole.learner);
  for (auto& [name, tensor] : tensors_of(resumed.learner)) {
    std::memcpy(tensor.data, from.at(name).data, tensor.bytes());
  }
  resumed.learner.state_restored();
  EXPECT_EQ(resumed.learner.updates(), 7u);
  run(whole, 7, 13);
  run(resumed, 7, 13);
  EXPECT_EQ(whole.tensors(), resumed.tensors());
  EXPECT_EQ(whole.learner.take_statistics(), resumed.learner.take_statistics());
}

TEST_P(LearnerDeviceTest, TheHostKeepsTheStateAlone) {
  const LearnerSpec spec = medium_spec();
  const RowLayout layout = medium_layout();
  DeviceLearner device(GetParam(), spec, layout);
  EXPECT_LT(device.learner.bytes(), LearnerFastSac::bytes_needed(spec, layout));
  EXPECT_EQ(device.learner.device()->bytes(),
            LearnerFastSac::device_bytes_needed(spec, layout, graph_backend_api(GetParam())));
}

}  // namespace
}  // namespace millrace

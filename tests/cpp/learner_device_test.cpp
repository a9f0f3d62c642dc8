// Tests for cpp/learner_fastsac.cpp with its programs on a backend: the same learning as on the
// host, whether launched eagerly or replayed as a graph.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "device_learner.h"

namespace millrace {
namespace {

constexpr uint64_t kSeed = kDeviceSeed;

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

MR_ON_EACH_REAL_BACKEND(LearnerDeviceTest);

// What is a matter of one update or a few: kernels that run on the CPU take a second for one.
class LearnerUpdateTest : public LearnerDeviceTest {};

MR_ON_EACH_COMPUTING_BACKEND(LearnerUpdateTest);
MR_ON_FAKE_METAL(LearnerUpdateTest);

void expect_equal_gradients(const std::string& backend, LearnerSpec spec, bool has_extras) {
  spec.symmetry = spec.observation_normalizer = has_extras;
  spec.alpha_init = 0.2f;  // large, so that the entropy's part shows
  spec.actor_lr = spec.critic_lr = spec.alpha_lr = 0.0f;
  const RowLayout layout = has_extras ? small_layout() : medium_layout();
  const RowMirror mirror = has_extras ? small_mirror() : RowMirror{};
  LearnerFastSac host(spec, layout, mirror, kSeed);
  DeviceLearner<LearnerFastSac> device(backend, spec, layout, mirror);
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

TEST_P(LearnerUpdateTest, EveryGradientOfOneUpdateIsTheHosts) {
  expect_equal_gradients(GetParam(), medium_spec(), false);
  expect_equal_gradients(GetParam(), small_spec(), true);
}

TEST_P(LearnerUpdateTest, EveryGradientOfPlainSacIsTheHosts) {
  LearnerSpec spec = plain_spec();
  expect_equal_gradients(GetParam(), spec, false);
  spec.network = NetworkBody::kFastSac;  // scalar critics with norms
  expect_equal_gradients(GetParam(), spec, false);
  spec = small_spec();
  spec.network = NetworkBody::kPlain;
  spec.critic = CriticKind::kScalar;
  expect_equal_gradients(GetParam(), spec, true);
}

void expect_equal_training(const std::string& backend, const LearnerSpec& spec, uint64_t updates) {
  const RowLayout layout = medium_layout();
  LearnerFastSac host(spec, layout, {}, kSeed);
  DeviceLearner<LearnerFastSac> device(backend, spec, layout);
  for (uint64_t i = 0; i < updates; ++i) {
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

TEST_P(LearnerUpdateTest, LossesAndParametersStayTheHostsForAFewUpdates) {
  expect_equal_training(GetParam(), medium_spec(), 4);
  expect_equal_training(GetParam(), plain_spec(), 4);
}

TEST_P(LearnerDeviceTest, LossesAndParametersStayTheHostsForAHundredUpdates) {
  expect_equal_training(GetParam(), medium_spec(), 100);
}

TEST_P(LearnerDeviceTest, LossesAndParametersOfPlainSacStayTheHostsForAHundredUpdates) {
  expect_equal_training(GetParam(), plain_spec(), 100);
}

// Bounds of the reduced precisions: those of their operands' rounding, through a whole update.
TEST_P(LearnerDeviceTest, ReducedPrecisionsFollowTheHostsGradient) {
  for (const Precision precision : {Precision::kTf32, Precision::kBf16}) {
    if ((graph_backend_api(GetParam()).precisions & precision_bit(precision)) == 0) continue;
    SCOPED_TRACE(to_string(precision));
    const LearnerSpec spec = medium_spec();
    const RowLayout layout = medium_layout();
    LearnerFastSac host(spec, layout, {}, kSeed);
    DeviceLearner<LearnerFastSac> device(GetParam(), spec, layout, {}, precision);
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

// The gradient alone would not do: it goes through the smaller of two values, and rounding may turn
// which one that is.
TEST_P(LearnerDeviceTest, ReducedPrecisionsOfPlainSacFollowTheHostsLosses) {
  for (const Precision precision : {Precision::kTf32, Precision::kBf16}) {
    if ((graph_backend_api(GetParam()).precisions & precision_bit(precision)) == 0) continue;
    SCOPED_TRACE(to_string(precision));
    const LearnerSpec spec = plain_spec();
    const RowLayout layout = medium_layout();
    LearnerFastSac host(spec, layout, {}, kSeed);
    DeviceLearner<LearnerFastSac> device(GetParam(), spec, layout, {}, precision);
    for (uint64_t i = 0; i < 20; ++i) {
      const std::vector<float> rows = random_rows(layout, spec.batch, 100 + i);
      host.update(rows.data(), layout.width(), i);
      device.update(rows, i);
      const nlohmann::json expected = host.take_statistics();
      const nlohmann::json found = device.learner.take_statistics();
      for (const char* name : {"loss/critic", "loss/actor"}) {
        const double value = expected[name];
        EXPECT_NEAR(found[name], value, 0.05 * std::max(1.0, std::abs(value))) << name << " " << i;
      }
    }
  }
}

// In every precision of the backend: what ops leave does not depend on whether they run at the same
// time.
TEST_P(LearnerDeviceTest, SideBySideHasTheBitsOfOneByOne) {
  const LearnerSpec spec = medium_spec();
  const RowLayout layout = medium_layout();
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    if ((graph_backend_api(GetParam()).precisions & precision_bit(precision)) == 0) continue;
    std::vector<std::vector<float>> parameters;
    for (const Order order : {Order::kOneByOne, Order::kSideBySide}) {
      DeviceLearner<LearnerFastSac> device(GetParam(), spec, layout, {}, precision);
      const std::vector<float> batch = random_rows(layout, spec.batch, 4);
      device.transfer.write(device.rows.floats(), batch);
      const FastSacPrograms& programs = device.learner.programs();
      DeviceWorkspace workspace(device.backend, device.stream, programs.workspace, programs.all(),
                                precision, Products::kLibrary, order);
      workspace.upload();
      for (uint64_t step = 0; step < 5; ++step) {
        Arguments arguments{};
        arguments.rows = device.rows.floats();
        arguments.row_stride = static_cast<u64>(layout.width());
        arguments.tick = step;
        arguments.actor_learning_rate = arguments.critic_learning_rate = 1e-3f;
        arguments.alpha_learning_rate = arguments.target_rate = 0.1f;
        workspace.set_arguments(arguments);
        for (const Program* program : programs.all()) workspace.submit(*program);
      }
      workspace.download();
      parameters.emplace_back();
      for (const Operand span :
           {programs.actor_state.parameters, programs.critic_state.parameters, programs.target}) {
        const auto& carrier = programs.workspace.carriers()[static_cast<size_t>(span.carrier)];
        const float* values = programs.workspace.floats(span);
        parameters.back().insert(parameters.back().end(), values, values + carrier.count);
      }
    }
    EXPECT_EQ(parameters[0], parameters[1]) << to_string(precision);
  }
}

// With this file's settings.
std::map<std::string, std::vector<float>> trained_of(const std::string& backend, bool as_graph,
                                                     Freeze freeze,
                                                     const LearnerSpec& spec = medium_spec()) {
  return trained<LearnerFastSac>(spec, medium_layout(), backend, as_graph, freeze);
}

class LearnerGraphTest : public testing::TestWithParam<std::string> {};

MR_ON_EACH_GRAPH_BACKEND(LearnerGraphTest);

TEST_P(LearnerGraphTest, AGraphReplaysTheBitsOfEagerRunsWithEveryArgumentVarying) {
  const auto eager = trained_of(GetParam(), false, freeze_nothing);
  EXPECT_EQ(trained_of(GetParam(), true, freeze_nothing), eager);
  EXPECT_EQ(trained_of(GetParam(), false, freeze_nothing), eager) << "a run repeats itself";
}

TEST_P(LearnerGraphTest, AGraphOfPlainSacReplaysTheBitsOfEagerRuns) {
  EXPECT_EQ(trained_of(GetParam(), true, freeze_nothing, plain_spec()),
            trained_of(GetParam(), false, freeze_nothing, plain_spec()));
}

// So the test above sees a graph that holds on to any of them.
TEST_P(LearnerDeviceTest, EveryArgumentMatters) {
  const bool as_graph = graph_backend_api(GetParam()).has_graphs != 0;
  const std::vector<Freeze> all = freezes();
  for (const LearnerSpec& spec : {medium_spec(), plain_spec()}) {
    const auto expected = trained_of(GetParam(), as_graph, freeze_nothing, spec);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_NE(trained_of(GetParam(), as_graph, all[i], spec), expected) << "argument " << i;
    }
  }
}

TEST_P(LearnerDeviceTest, AnUpdateThatIsNotFiniteChangesNothingAndIsCounted) {
  const LearnerSpec spec = medium_spec();
  const RowLayout layout = medium_layout();
  for (const float poison :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    DeviceLearner<LearnerFastSac> device(GetParam(), spec, layout);
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
  DeviceLearner<LearnerFastSac> whole(GetParam(), spec, layout), resumed(GetParam(), spec, layout);
  const auto run = [&](DeviceLearner<LearnerFastSac>& device, uint64_t from, uint64_t to) {
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
    copy_tensor(from.at(name), tensor);
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
  DeviceLearner<LearnerFastSac> device(GetParam(), spec, layout);
  EXPECT_LT(device.learner.bytes(), LearnerFastSac::bytes_needed(spec, layout));
  EXPECT_EQ(device.learner.device()->bytes(),
            LearnerFastSac::device_bytes_needed(spec, layout, graph_backend_api(GetParam()),
                                                Precision::kFp32));
}

}  // namespace
}  // namespace millrace

// Tests for cpp/learner_fastsac.cpp and cpp/fastsac_programs.cpp.
#include "learner_fastsac.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "fastsac_fixture.h"
#include "fastsac_reference.h"
#include "finite_differences.h"

namespace millrace {
namespace {

constexpr uint64_t kSeed = 77;
constexpr uint64_t kUpdate = 12345;

// Everything of `learner` that the reference needs.
FastSacReference reference_of(LearnerFastSac& learner, const RowMirror& mirror,
                              const std::vector<float>& rows) {
  const FastSacPrograms& p = learner.programs();
  FastSacReference reference{p.spec, p.layout, mirror, kSeed, kUpdate, rows, {}, {}, {}, {}, {}};
  for (const auto& [name, tensor] : tensors_of(learner)) {
    if (!is_network_tensor(name) && name != "alpha/log") continue;
    const std::vector<float> values = floats_of(tensor);
    reference.parameters[name] = Vector(values.begin(), values.end());
  }
  if (p.spec.observation_normalizer) {
    const auto copy = [&](Operand from, int count) {
      const float* values = p.workspace.floats(from);
      return Vector(values, values + count);
    };
    reference.observation_mean = copy(p.observation_mean, p.layout.observation_dim);
    reference.observation_scale = copy(p.observation_scale, p.layout.observation_dim);
    reference.critic_mean = copy(p.critic_mean, p.layout.critic_dim);
    reference.critic_scale = copy(p.critic_scale, p.layout.critic_dim);
  }
  return reference;
}

// Named views of the gradient carriers.
std::map<std::string, std::vector<float>> gradients_of(const LearnerFastSac& learner) {
  const FastSacPrograms& p = learner.programs();
  StateRegistry registry;
  register_network(registry, p.actor, "actor", "", p.workspace.floats(p.actor_state.gradient));
  register_network(registry, p.critic, "critic", "", p.workspace.floats(p.critic_state.gradient));
  std::map<std::string, std::vector<float>> gradients;
  for (const StateTensor& tensor : registry.tensors()) gradients[tensor.name] = floats_of(tensor);
  return gradients;
}

constexpr double kDifferenceStep = 1e-5;

struct Case {
  int batch, atoms;
  bool symmetry, normalizer;
  CriticKind critic = CriticKind::kC51;
  NetworkBody network = NetworkBody::kFastSac;
};

class FastSacGradient : public testing::TestWithParam<Case> {};

TEST_P(FastSacGradient, EqualsCentralDifferencesOfTheReference) {
  LearnerSpec spec = small_spec();
  spec.batch = GetParam().batch;
  spec.atoms = GetParam().atoms;
  spec.symmetry = GetParam().symmetry;
  spec.observation_normalizer = GetParam().normalizer;
  spec.critic = GetParam().critic;
  spec.network = GetParam().network;
  spec.target_entropy_ratio = 0.5f;
  spec.alpha_init = 0.2f;  // large, so that the entropy's part shows
  // At rate 0 the parameters stay, so that the actor's gradient is taken where the critics' is.
  spec.actor_lr = spec.critic_lr = spec.alpha_lr = 0.0f;
  const RowLayout layout = small_layout();
  LearnerFastSac learner(spec, layout, small_mirror(), kSeed);
  randomise_networks(learner, 5);
  const std::vector<float> rows = random_rows(layout, spec.gathered_rows(), 9);
  learner.normalise_from(rows.data(), spec.gathered_rows(), layout.width());
  FastSacReference reference = reference_of(learner, small_mirror(), rows);
  learner.update(rows.data(), layout.width(), kUpdate);

  const auto targets = reference.targets();
  const auto gradients = gradients_of(learner);
  ASSERT_EQ(gradients.size(), (spec.network == NetworkBody::kPlain ? 8u : 14u) * 3);
  for (const auto& [name, gradient] : gradients) {
    const bool is_actor = name.rfind("actor", 0) == 0;
    const Vector expected = central_differences(reference, name, kDifferenceStep, [&] {
      return is_actor ? reference.actor_loss() : reference.critic_loss(targets);
    });
    EXPECT_LE(relative_distance(gradient, expected), 1e-4) << name;
  }
  const Vector expected = central_differences(reference, "alpha/log", kDifferenceStep,
                                              [&] { return reference.temperature_loss(); });
  const float temperature = *learner.programs().workspace.floats(learner.programs().alpha_gradient);
  EXPECT_LE(relative_distance({temperature}, expected), 1e-4);

  const nlohmann::json statistics = learner.take_statistics();
  EXPECT_NEAR(statistics["loss/critic"], reference.critic_loss(targets), 1e-4);
  EXPECT_NEAR(statistics["loss/actor"], reference.actor_loss(), 1e-4);
  EXPECT_NEAR(statistics["loss/temperature"], reference.temperature_loss(), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Shapes, FastSacGradient,
                         testing::Values(Case{8, 11, false, false}, Case{8, 101, false, false},
                                         Case{16, 11, true, true}));
INSTANTIATE_TEST_SUITE_P(
    ScalarCritics, FastSacGradient,
    testing::Values(Case{8, 11, false, false, CriticKind::kScalar},
                    Case{16, 11, true, true, CriticKind::kScalar},
                    Case{8, 11, false, false, CriticKind::kScalar, NetworkBody::kPlain},
                    Case{8, 11, true, true, CriticKind::kScalar, NetworkBody::kPlain},
                    Case{8, 11, false, false, CriticKind::kC51, NetworkBody::kPlain}));

std::vector<std::vector<float>> parameters_of(Learner& learner) {
  std::vector<std::vector<float>> all;
  for (const auto& [name, tensor] : tensors_of(learner)) {
    if (is_network_tensor(name) || name == "alpha/log") all.push_back(floats_of(tensor));
  }
  return all;
}

TEST(FastSac, TwoLearnersOfOneSeedAreBitEqual) {
  LearnerSpec spec = small_spec();
  spec.policy_frequency = 2;
  const RowLayout layout = small_layout();
  LearnerFastSac a(spec, layout, {}, kSeed), b(spec, layout, {}, kSeed), c(spec, layout, {}, 78);
  for (uint64_t i = 0; i < 20; ++i) {
    const std::vector<float> rows = random_rows(layout, spec.batch, 100 + i);
    for (LearnerFastSac* learner : {&a, &b, &c}) learner->update(rows.data(), layout.width(), i);
  }
  EXPECT_EQ(parameters_of(a), parameters_of(b));
  EXPECT_NE(parameters_of(a), parameters_of(c));
}

TEST(FastSac, ResumesBitForBitFromItsTensors) {
  LearnerSpec spec = small_spec();
  spec.observation_normalizer = true;
  spec.policy_frequency = 2;
  const RowLayout layout = small_layout();
  LearnerFastSac whole(spec, layout, {}, kSeed), resumed(spec, layout, {}, kSeed);
  const auto run = [&](LearnerFastSac& learner, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i) {
      const std::vector<float> rows = random_rows(layout, spec.batch, 100 + i);
      learner.normalise_from(rows.data(), spec.batch, layout.width());
      learner.update(rows.data(), layout.width(), i);
    }
  };
  run(whole, 0, 7);
  const auto from = tensors_of(whole);
  for (auto& [name, tensor] : tensors_of(resumed)) {
    copy_tensor(from.at(name), tensor);
  }
  resumed.state_restored();
  EXPECT_EQ(resumed.updates(), 7u);
  run(whole, 7, 13);
  run(resumed, 7, 13);
  EXPECT_EQ(parameters_of(whole), parameters_of(resumed));
  EXPECT_EQ(whole.take_statistics(), resumed.take_statistics());
}

TEST(FastSac, ActorStepsAtEveryPolicyFrequencyThUpdateOfTheRun) {
  LearnerSpec spec = small_spec();
  spec.policy_frequency = 3;
  const RowLayout layout = small_layout();
  LearnerFastSac learner(spec, layout, {}, kSeed);
  const std::vector<float> rows = random_rows(layout, spec.batch, 1);
  std::vector<uint64_t> stepped;
  std::vector<float> before = floats_of(tensors_of(learner).at("actor/head/bias"));
  for (uint64_t i = 0; i < 7; ++i) {
    learner.update(rows.data(), layout.width(), i);
    const std::vector<float> after = floats_of(tensors_of(learner).at("actor/head/bias"));
    if (after != before) stepped.push_back(i);
    before = after;
  }
  EXPECT_EQ(stepped, (std::vector<uint64_t>{2, 5}));
}

TEST(FastSac, AnUpdateThatIsNotFiniteChangesNothingAndIsCounted) {
  LearnerSpec spec = small_spec();
  const RowLayout layout = small_layout();
  for (const auto& [poison, critic] :
       {std::pair{std::numeric_limits<float>::quiet_NaN(), CriticKind::kC51},
        {std::numeric_limits<float>::infinity(), CriticKind::kC51},
        {std::numeric_limits<float>::quiet_NaN(), CriticKind::kScalar},
        {std::numeric_limits<float>::infinity(), CriticKind::kScalar}}) {
    spec.critic = critic;
    LearnerFastSac learner(spec, layout, {}, kSeed);
    std::vector<float> rows = random_rows(layout, spec.batch, 1);
    learner.update(rows.data(), layout.width(), 0);
    learner.take_statistics();
    const auto before = parameters_of(learner);
    std::vector<float> poisoned = rows;
    poisoned[3 * layout.width() + layout.reward()] = poison;
    learner.update(poisoned.data(), layout.width(), 1);
    EXPECT_EQ(parameters_of(learner), before);
    const nlohmann::json statistics = learner.take_statistics();
    EXPECT_GE(statistics["learner/nonfinite_updates"].get<int>(), 1);
    EXPECT_EQ(statistics.count("loss/critic"), 0u);
    learner.update(rows.data(), layout.width(), 2);
    EXPECT_NE(parameters_of(learner), before);
    EXPECT_EQ(learner.take_statistics()["learner/nonfinite_updates"], 0);
  }
}

TEST(FastSac, APoisonedWeightIsReported) {
  LearnerSpec spec = small_spec();
  const RowLayout layout = small_layout();
  for (const NetworkBody body : {NetworkBody::kFastSac, NetworkBody::kPlain}) {
    for (const CriticKind critic : {CriticKind::kC51, CriticKind::kScalar}) {
      spec.network = body;
      spec.critic = critic;
      LearnerFastSac learner(spec, layout, {}, kSeed);
      const std::vector<float> rows = random_rows(layout, spec.batch, 1);
      static_cast<float*>(tensors_of(learner).at("critic/1/l1/weight").data)[5] =
          std::numeric_limits<float>::quiet_NaN();
      for (uint64_t i = 0; i < 5; ++i) learner.update(rows.data(), layout.width(), i);
      EXPECT_GE(learner.take_statistics()["learner/nonfinite_updates"].get<int>(), 5);
    }
  }
}

TEST(FastSac, TargetsMoveByTauTowardsTheNewCritics) {
  LearnerSpec spec = small_spec();
  spec.tau = 0.25f;
  const RowLayout layout = small_layout();
  LearnerFastSac learner(spec, layout, {}, kSeed);
  randomise_networks(learner, 3);
  const auto tensors = tensors_of(learner);
  const std::vector<float> before = floats_of(tensors.at("target/1/l0/weight"));
  const std::vector<float> rows = random_rows(layout, spec.batch, 1);
  learner.update(rows.data(), layout.width(), 0);
  const std::vector<float> after = floats_of(tensors.at("target/1/l0/weight"));
  const std::vector<float> online = floats_of(tensors.at("critic/1/l0/weight"));
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_NEAR(after[i], 0.75 * before[i] + 0.25 * online[i], 1e-6);
  }
}

TEST(FastSac, GradientsAreClippedToTheNorm) {
  LearnerSpec spec = small_spec();
  spec.max_grad_norm = 0.01f;
  const RowLayout layout = small_layout();
  LearnerFastSac learner(spec, layout, {}, kSeed);
  randomise_networks(learner, 3);
  const std::vector<float> rows = random_rows(layout, spec.batch, 1);
  learner.update(rows.data(), layout.width(), 0);
  const auto tensors = tensors_of(learner);
  double squares = 0;  // the first moment after one step is (1 - beta1) times the clipped gradient
  for (const auto& [name, tensor] : tensors) {
    if (name.rfind("adam/critic/", 0) != 0 || name.substr(name.size() - 2) != "/m") continue;
    for (const float m : floats_of(tensor)) squares += m / 0.1 * (m / 0.1);
  }
  EXPECT_NEAR(std::sqrt(squares), 0.01, 1e-5);
}

TEST(FastSac, SymmetryDoublesTheBatchWithMirrorImages) {
  LearnerSpec with = small_spec(), without = small_spec();
  with.symmetry = true;
  const RowLayout layout = small_layout();
  const RowMirror mirror = small_mirror();
  const std::vector<float> half = random_rows(layout, 8, 1);
  std::vector<float> doubled = half;
  for (int r = 0; r < 8; ++r) {
    const float* row = half.data() + r * layout.width();
    std::vector<float> image(row, row + layout.width());
    const auto reflect = [&](int column, const MirrorColumns& map) {
      for (size_t i = 0; i < map.source.size(); ++i) {
        image[column + i] = map.sign[i] * row[column + map.source[i]];
      }
    };
    reflect(layout.observation(), mirror.observation);
    reflect(layout.next_observation(), mirror.observation);
    reflect(layout.action(), mirror.action);
    reflect(layout.critic(), mirror.critic);
    reflect(layout.next_critic(), mirror.critic);
    doubled.insert(doubled.end(), image.begin(), image.end());
  }
  LearnerFastSac a(with, layout, mirror, kSeed), b(without, layout, {}, kSeed);
  a.update(half.data(), layout.width(), 0);
  b.update(doubled.data(), layout.width(), 0);
  EXPECT_EQ(parameters_of(a), parameters_of(b));
}

TEST(FastSac, InitialWeightsAreUniformAndTheActorsHeadsZero) {
  const LearnerSpec spec = small_spec();
  const RowLayout layout = small_layout();
  LearnerFastSac learner(spec, layout, {}, kSeed);
  const auto tensors = tensors_of(learner);
  for (const float w : floats_of(tensors.at("actor/head/weight"))) EXPECT_EQ(w, 0.0f);
  const float limit = 1.0f / std::sqrt(10.0f);  // critic 7 + action 3
  float largest = 0;
  for (const float w : floats_of(tensors.at("critic/0/l0/weight"))) {
    largest = std::max(largest, std::abs(w));
  }
  EXPECT_LE(largest, limit);
  EXPECT_GT(largest, 0.95f * limit);
  EXPECT_NE(floats_of(tensors.at("critic/0/l0/weight")),
            floats_of(tensors.at("critic/1/l0/weight")));
  EXPECT_EQ(floats_of(tensors.at("critic/1/head/bias")),
            floats_of(tensors.at("target/1/head/bias")));
  EXPECT_EQ(tensors.at("actor/l0/weight").shape, (std::vector<int64_t>{16, 5}));
  EXPECT_EQ(tensors.at("actor/head/weight").shape, (std::vector<int64_t>{6, 4}));
  EXPECT_EQ(floats_of(tensors.at("alpha/log"))[0], std::log(0.01f));
}

TEST(FastSac, OddBatchWithSymmetryIsRefused) {
  LearnerSpec spec = small_spec();
  spec.symmetry = true;
  spec.batch = 15;
  EXPECT_THROW(LearnerFastSac(spec, small_layout(), small_mirror(), 1), Failure);
}

TEST(FastSac, BytesAreKnownBeforeTheyAreAllocated) {
  LearnerSpec spec = small_spec();
  spec.observation_normalizer = true;
  const RowLayout layout = small_layout();
  const size_t needed = LearnerFastSac::bytes_needed(spec, layout);
  EXPECT_EQ(LearnerFastSac(spec, layout, {}, 1).bytes(), needed);
  spec.critic_hidden *= 2;
  EXPECT_GT(LearnerFastSac::bytes_needed(spec, layout), needed);
}

}  // namespace
}  // namespace millrace

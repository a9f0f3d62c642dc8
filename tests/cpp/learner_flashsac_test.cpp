// Tests for cpp/learner_flashsac.h, cpp/flashsac_programs.cpp and what cpp/learner_sac.cpp adds for
// FlashSAC: gradients against finite differences, and what a step leaves behind.
#include "learner_flashsac.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "finite_differences.h"
#include "flashsac_fixture.h"
#include "flashsac_reference.h"

namespace millrace {
namespace {

constexpr uint64_t kSeed = 77;
constexpr uint64_t kUpdate = 12345;

FlashSacReference reference_of(LearnerFlashSac& learner, const RowMirror& mirror,
                               const std::vector<float>& rows) {
  const FlashSacPrograms& p = learner.programs();
  FlashSacReference reference;
  reference.spec = p.spec;
  reference.layout = p.layout;
  reference.mirror = mirror;
  reference.seed = kSeed;
  reference.update = kUpdate;
  reference.rows = rows;
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

std::map<std::string, std::vector<float>> gradients_of(const LearnerFlashSac& learner) {
  const FlashSacPrograms& p = learner.programs();
  StateRegistry registry;
  register_tensors(registry, p.actor.tensors(), 1, "actor", "",
                   p.workspace.floats(p.actor_state.gradient), true);
  register_tensors(registry, p.critic.tensors(), 2, "critic", "",
                   p.workspace.floats(p.critic_state.gradient), true);
  std::map<std::string, std::vector<float>> gradients;
  for (const StateTensor& tensor : registry.tensors()) gradients[tensor.name] = floats_of(tensor);
  return gradients;
}

constexpr double kDifferenceStep = 1e-6;

struct Case {
  int batch, atoms;
  bool symmetry, normalizer;
};

class FlashSacGradient : public testing::TestWithParam<Case> {};

TEST_P(FlashSacGradient, EqualsCentralDifferencesOfTheReference) {
  LearnerSpec spec = small_flash_spec();
  spec.batch = GetParam().batch;
  spec.atoms = GetParam().atoms;
  spec.symmetry = GetParam().symmetry;
  spec.observation_normalizer = GetParam().normalizer;
  spec.alpha_init = 0.2f;  // large, so that the entropy's part shows
  spec.actor_lr = spec.critic_lr = spec.alpha_lr = 0.0f;
  const RowLayout layout = small_layout();
  LearnerFlashSac learner(spec, layout, small_mirror(), kSeed);
  randomise_networks(learner, 5);
  const std::vector<float> rows = random_rows(layout, spec.gathered_rows(), 9);
  learner.normalise_from(rows.data(), spec.gathered_rows(), layout.width());
  FlashSacReference before = reference_of(learner, small_mirror(), rows);
  constexpr float reward_scale = 0.7f;
  learner.set_reward_scale(reward_scale);
  learner.update(rows.data(), layout.width(), kUpdate);
  // The actor's step meets the critics as theirs left them: rows normalised, statistics moved.
  FlashSacReference between = reference_of(learner, small_mirror(), rows);
  for (auto& [name, values] : between.parameters) {
    if (name.rfind("actor/", 0) == 0) values = before.parameters.at(name);
  }

  const auto targets = before.flash_targets(reward_scale);
  const auto inputs = before.critic_inputs();
  const auto gradients = gradients_of(learner);
  ASSERT_EQ(gradients.size(), 18u * 3);
  for (const auto& [name, gradient] : gradients) {
    const bool is_actor = name.rfind("actor", 0) == 0;
    const Vector expected =
        central_differences(is_actor ? between : before, name, kDifferenceStep, [&] {
          return is_actor ? between.flash_actor_loss()
                          : before.flash_critic_loss(name[7] - '0', targets, inputs) / 2;
        });
    EXPECT_LE(relative_distance(gradient, expected), 1e-4) << name;
  }
  const Vector expected = central_differences(between, "alpha/log", kDifferenceStep,
                                              [&] { return between.flash_temperature_loss(); });
  const float temperature = *learner.programs().workspace.floats(learner.programs().alpha_gradient);
  EXPECT_LE(relative_distance({temperature}, expected), 1e-4);

  const nlohmann::json statistics = learner.take_statistics();
  const double critic_loss = (before.flash_critic_loss(0, targets, inputs) +
                              before.flash_critic_loss(1, targets, inputs)) /
                             2;
  EXPECT_NEAR(statistics["loss/critic"], critic_loss, 1e-4);
  EXPECT_NEAR(statistics["loss/actor"], between.flash_actor_loss(), 1e-4);
  EXPECT_NEAR(statistics["loss/temperature"], between.flash_temperature_loss(), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Shapes, FlashSacGradient,
                         testing::Values(Case{6, 11, false, false}, Case{6, 101, false, false},
                                         Case{12, 11, true, true}));

std::map<std::string, std::vector<float>> networks_of(Learner& learner) {
  std::map<std::string, std::vector<float>> all;
  for (const auto& [name, tensor] : tensors_of(learner)) {
    if (is_network_tensor(name) || name == "alpha/log") all[name] = floats_of(tensor);
  }
  return all;
}

double length(const std::vector<float>& values, size_t first, size_t count) {
  double squares = 0;
  for (size_t i = first; i < first + count; ++i) squares += double{values[i]} * values[i];
  return std::sqrt(squares);
}

// Weights have rows of length 1, the vectors of norms the square root of their width.
void expect_lengths(const std::map<std::string, std::vector<float>>& networks,
                    const std::string& prefix, Learner& learner) {
  int checked = 0;
  const auto tensors = tensors_of(learner);
  for (const auto& [name, values] : networks) {
    if (name.rfind(prefix, 0) != 0) continue;
    const std::vector<int64_t>& shape = tensors.at(name).shape;
    const bool is_weight = shape.size() == 2;
    const bool is_gain = name.find("norm/weight") != std::string::npos;
    if (is_weight) {
      const size_t width = static_cast<size_t>(shape[1]);
      for (size_t first = 0; first < values.size(); first += width) {
        ASSERT_NEAR(length(values, first, width), 1.0, 1e-5) << name;
      }
    } else if (is_gain) {
      std::string shift_name = name;
      shift_name.replace(name.rfind("weight"), 6, "bias");
      const auto shift = networks.find(shift_name);
      const double of_shift =
          shift == networks.end() ? 0.0 : length(shift->second, 0, shift->second.size());
      EXPECT_NEAR(std::hypot(length(values, 0, values.size()), of_shift),
                  std::sqrt(static_cast<double>(values.size())), 1e-4)
          << name;
    }
    checked += is_weight || is_gain ? 1 : 0;
  }
  EXPECT_GE(checked, 12);
}

TEST(FlashSac, RowsAndNormsKeepTheirLengthsThroughUpdates) {
  LearnerSpec spec = small_flash_spec();
  spec.actor_lr = spec.critic_lr = 0.05f;
  const RowLayout layout = small_layout();
  LearnerFlashSac learner(spec, layout, {}, kSeed);
  expect_lengths(networks_of(learner), "critic/0/", learner);
  const auto before = networks_of(learner);
  for (uint64_t i = 0; i < 5; ++i) {
    const std::vector<float> rows = random_rows(layout, spec.batch, 100 + i);
    learner.update(rows.data(), layout.width(), i);
  }
  const auto after = networks_of(learner);
  for (const char* prefix : {"actor/", "critic/0/", "critic/1/"}) {
    expect_lengths(after, prefix, learner);
  }
  EXPECT_NE(after.at("critic/1/b1/l0/weight"), before.at("critic/1/b1/l0/weight"));
}

TEST(FlashSac, TargetsMoveByTauTowardsTheNormalisedCriticsAndKeepTheirOwnStatistics) {
  LearnerSpec spec = small_flash_spec();
  spec.tau = 0.25f;
  const RowLayout layout = small_layout();
  LearnerFlashSac learner(spec, layout, {}, kSeed);
  randomise_networks(learner, 3);
  const auto before = networks_of(learner);
  const std::vector<float> rows = random_rows(layout, spec.batch, 1);
  learner.update(rows.data(), layout.width(), 0);
  const auto after = networks_of(learner);
  for (const auto& [name, target] : after) {
    if (name.rfind("target/", 0) != 0) continue;
    const std::string online = "critic" + name.substr(6);
    const bool is_statistic =
        name.substr(name.size() - 5) == "/mean" || name.substr(name.size() - 4) == "/var";
    for (size_t i = 0; i < target.size() && !is_statistic; ++i) {
      ASSERT_NEAR(target[i], 0.75 * before.at(name)[i] + 0.25 * after.at(online)[i], 1e-6) << name;
    }
    if (is_statistic && name.find("embed") == std::string::npos) {
      EXPECT_NE(target, after.at(online)) << name;
    }
    if (is_statistic) {
      EXPECT_NE(target, before.at(name)) << name;
    }
  }
}

// Of the observation: what the embedding of the actor sees is known.
TEST(FlashSac, RunningStatisticsMoveByAHundredthTowardsTheBatch) {
  const LearnerSpec spec = small_flash_spec();
  const RowLayout layout = small_layout();
  LearnerFlashSac learner(spec, layout, {}, kSeed);
  const std::vector<float> rows = random_rows(layout, spec.batch, 1);
  const auto before = networks_of(learner);
  learner.update(rows.data(), layout.width(), 0);
  const auto after = networks_of(learner);
  for (int i = 0; i < layout.observation_dim; ++i) {
    double mean = 0, squares = 0;
    const int count = 2 * spec.batch;
    const auto value = [&](int r) {
      const int column = r < spec.batch ? layout.observation() : layout.next_observation();
      return double{rows[(r % spec.batch) * layout.width() + column + i]};
    };
    for (int r = 0; r < count; ++r) mean += value(r) / count;
    for (int r = 0; r < count; ++r) squares += (value(r) - mean) * (value(r) - mean);
    EXPECT_NEAR(after.at("actor/embed/norm/mean")[i], 0.01 * mean, 1e-6);
    EXPECT_NEAR(after.at("actor/embed/norm/var")[i], 0.99 + 0.01 * squares / (count - 1), 1e-6);
  }
  EXPECT_NE(after.at("critic/0/b1/l1/norm/var"), before.at("critic/0/b1/l1/norm/var"));
}

TEST(FlashSac, AnUpdateThatIsNotFiniteChangesNothingAndIsCounted) {
  const LearnerSpec spec = small_flash_spec();
  const RowLayout layout = small_layout();
  const float poisons[] = {std::numeric_limits<float>::quiet_NaN(),
                           std::numeric_limits<float>::infinity()};
  for (const int column : {layout.reward(), layout.observation(), layout.next_critic()}) {
    for (const float poison : poisons) {
      LearnerFlashSac learner(spec, layout, {}, kSeed);
      std::vector<float> rows = random_rows(layout, spec.batch, 1);
      learner.update(rows.data(), layout.width(), 0);
      learner.take_statistics();
      const auto before = networks_of(learner);
      std::vector<float> poisoned = rows;
      poisoned[3 * layout.width() + column] = poison;
      learner.update(poisoned.data(), layout.width(), 1);
      const bool is_actors_alone = column == layout.observation();
      for (const auto& [name, values] : networks_of(learner)) {
        const bool is_actors = name.rfind("actor/", 0) == 0 || name == "alpha/log";
        if (is_actors_alone && !is_actors) continue;
        EXPECT_EQ(values, before.at(name)) << name;
      }
      EXPECT_GE(learner.take_statistics()["learner/nonfinite_updates"].get<int>(), 1);
      learner.update(rows.data(), layout.width(), 2);
      EXPECT_NE(networks_of(learner), before);
      EXPECT_EQ(learner.take_statistics()["learner/nonfinite_updates"], 0);
    }
  }
}

TEST(FlashSac, ResumesBitForBitFromItsTensors) {
  LearnerSpec spec = small_flash_spec();
  spec.observation_normalizer = true;
  spec.policy_frequency = 2;
  spec.lr_decay_steps = 10;
  spec.lr_final_share = 0.5f;
  const RowLayout layout = small_layout();
  LearnerFlashSac whole(spec, layout, {}, kSeed), resumed(spec, layout, {}, kSeed);
  const auto run = [&](LearnerFlashSac& learner, uint64_t from, uint64_t to) {
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
  run(whole, 7, 13);
  run(resumed, 7, 13);
  const auto expected = tensors_of(whole);
  for (const auto& [name, tensor] : tensors_of(resumed)) {
    EXPECT_EQ(bytes_of(tensor), bytes_of(expected.at(name))) << name;
  }
  EXPECT_EQ(whole.take_statistics(), resumed.take_statistics());
}

// Critic, actor and temperature count their own steps; the temperature steps with the actor.
TEST(FlashSac, LearningRatesFallWithTheStepsOfTheirOwnOptimizer) {
  LearnerSpec spec = small_flash_spec();
  spec.policy_frequency = 2;
  spec.lr_decay_steps = 100;
  spec.lr_final_share = 0.5f;
  LearnerFlashSac learner(spec, small_layout(), {}, kSeed);
  const Arguments first = learner.arguments(nullptr, 0, 1);
  EXPECT_EQ(first.actor_learning_rate, spec.actor_lr);
  EXPECT_EQ(first.alpha_learning_rate, spec.alpha_lr);
  EXPECT_LT(first.critic_learning_rate, spec.critic_lr);
  const Arguments middle = learner.arguments(nullptr, 0, 101);
  EXPECT_EQ(middle.critic_learning_rate, 0.5f * spec.critic_lr);
  EXPECT_NEAR(middle.actor_learning_rate, 0.75f * spec.actor_lr, 1e-9);
  EXPECT_EQ(middle.alpha_learning_rate, middle.actor_learning_rate);
}

TEST(FlashSac, BytesAreKnownBeforeTheyAreAllocated) {
  LearnerSpec spec = small_flash_spec();
  const RowLayout layout = small_layout();
  const size_t needed = LearnerSac::bytes_needed(spec, layout);
  EXPECT_EQ(LearnerFlashSac(spec, layout, {}, 1).bytes(), needed);
  spec.critic_hidden *= 2;
  EXPECT_GT(LearnerSac::bytes_needed(spec, layout), needed);
}

// Nobody else's rows matter: it acts by running statistics.
TEST(FlashSac, ThePolicyActsInEvaluationMode) {
  const LearnerSpec spec = small_flash_spec();
  const RowLayout layout = small_layout();
  LearnerFlashSac learner(spec, layout, {}, kSeed);
  randomise_networks(learner, 2);
  Policy policy(learner.policy_shape(), 16);
  ASSERT_EQ(policy.parameter_count(), learner.policy_parameter_count());
  policy.load(learner.policy_parameters());
  std::vector<float> observations(16 * layout.observation_dim);
  for (size_t i = 0; i < observations.size(); ++i) {
    observations[i] = random_normal(random_source(8, kStreamEvent, 0, 0), static_cast<u32>(i));
  }
  std::vector<float> all(16 * 3), one(3);
  policy.act_deterministic(observations.data(), 16, all.data());
  policy.act_deterministic(observations.data(), 1, one.data());
  FlashSacReference reference = reference_of(learner, {}, {});
  const Vector first(observations.begin(), observations.begin() + layout.observation_dim);
  const Vector heads = reference.flash_network("actor", {first}, false)[0];
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(all[i], one[i], 1e-6);
    EXPECT_NEAR(all[i], std::tanh(heads[i]), 1e-5);
  }
}

}  // namespace
}  // namespace millrace

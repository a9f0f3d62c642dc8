// Public bug K2: errors of the mathematics that every unit test passes are shown by a learning
// curve only. FastSAC must learn to bring a one-dimensional point mass to rest at the origin.
#include <gtest/gtest.h>

#include <cmath>

#include "fastsac_fixture.h"
#include "learner_flashsac.h"
#include "noise_repetition.h"
#include "reward_scale.h"

namespace millrace {
namespace {

constexpr int kEnvironments = 16;
constexpr int kSteps = 60;  // an episode; ends by time alone

struct PointMass {
  float x, v;

  void reset(uint64_t seed, u32 environment, uint64_t episode) {
    const RandomSource source = random_source(seed, kStreamReset, environment, episode);
    x = random_uniform(source, 0, -1.5f, 1.5f);
    v = random_uniform(source, 1, -0.5f, 0.5f);
  }
  // 0.1 s of unit mass under a force of up to 2 N; the reward is 1 at rest at the origin.
  float step(float action) {
    v += 0.1f * 2.0f * action;
    x += 0.1f * v;
    return 1.0f / (1.0f + 4.0f * x * x + 0.5f * v * v);
  }
};

double deterministic_return(Policy& policy) {
  std::vector<PointMass> masses(kEnvironments);
  for (int e = 0; e < kEnvironments; ++e) masses[e].reset(1234, e, 0);
  double sum = 0;
  for (int t = 0; t < kSteps; ++t) {
    float observations[kEnvironments * 2], actions[kEnvironments];
    for (int e = 0; e < kEnvironments; ++e) {
      observations[2 * e] = masses[e].x;
      observations[2 * e + 1] = masses[e].v;
    }
    policy.act_deterministic(observations, kEnvironments, actions);
    for (int e = 0; e < kEnvironments; ++e) sum += masses[e].step(actions[e]) / kEnvironments;
  }
  return sum;
}

LearnerSpec point_mass_spec() {
  LearnerSpec spec = small_spec();
  spec.batch = 128;
  spec.policy_frequency = 2;
  spec.actor_hidden = 32;
  spec.critic_hidden = 64;
  spec.atoms = 51;
  spec.v_min = 0;
  spec.v_max = 40;
  spec.actor_lr = spec.critic_lr = spec.alpha_lr = 1e-3f;
  spec.gamma = 0.97f;
  return spec;
}

// Trains for some ticks of all environments, two updates each after the first 20; returns the
// deterministic policy's return before and after.
struct Returns {
  double before, after;
};

template <class AnyLearner>
Returns train(LearnerSpec spec, uint64_t ticks) {
  const RowLayout layout{2, 1, 2};
  AnyLearner learner(spec, layout, RowMirror{}, 1);
  Policy policy(learner.policy_shape(), kEnvironments);
  policy.load(learner.policy_parameters());
  NoiseRepetition noise(kEnvironments, spec.noise_repeat_max, 1);
  RewardScale scale(spec, kEnvironments);
  StateView state{};
  Returns returns{};
  returns.before = deterministic_return(policy);

  std::vector<float> replay, batch(spec.batch * layout.width());
  std::vector<PointMass> masses(kEnvironments);
  uint64_t updates = 0;
  for (uint64_t tick = 0; tick < ticks; ++tick) {
    float observations[kEnvironments * 2], actions[kEnvironments];
    for (int e = 0; e < kEnvironments; ++e) {
      if (tick % kSteps == 0) masses[e].reset(1, e, tick / kSteps);
      observations[2 * e] = masses[e].x;
      observations[2 * e + 1] = masses[e].v;
    }
    noise.advance(tick);
    policy.act_exploring(observations, kEnvironments, 1, tick, actions, noise.drawn_at());
    float rewards[kEnvironments];
    int done[kEnvironments];
    for (int e = 0; e < kEnvironments; ++e) {
      rewards[e] = masses[e].step(actions[e]);
      done[e] = tick % kSteps == kSteps - 1 ? 1 : 0;
      const float *o = observations + 2 * e, *n = &masses[e].x;
      const float ends = static_cast<float>(done[e]);
      replay.insert(replay.end(), {o[0], o[1], n[0], n[1], actions[e], rewards[e], ends, ends, o[0],
                                   o[1], n[0], n[1]});
    }
    state.episode[kReward] = {rewards, 1, 1, 1};
    state.counter[kDone] = {done, 1};
    scale.absorb(state);
    if (spec.reward_scaling != RewardScaling::kOff) learner.set_reward_scale(scale.factor());
    if (tick < 20) continue;
    for (int i = 0; i < 2; ++i, ++updates) {
      for (int r = 0; r < spec.batch; ++r) {
        const u32 row = random_index(random_source(1, kStreamSampler, 0, updates), r,
                                     static_cast<u32>(replay.size() / layout.width()));
        std::copy_n(replay.data() + row * layout.width(), layout.width(),
                    batch.data() + r * layout.width());
      }
      learner.update(batch.data(), layout.width(), updates);
    }
    policy.load(learner.policy_parameters());
  }
  returns.after = deterministic_return(policy);
  testing::Test::RecordProperty("before", std::to_string(returns.before));
  testing::Test::RecordProperty("after", std::to_string(returns.after));
  return returns;
}

TEST(Learning, FastSacBringsAPointMassToRest) {
  const Returns returns = train<LearnerFastSac>(point_mass_spec(), 1000);
  EXPECT_LT(returns.before, 25.0);
  EXPECT_GT(returns.after, 48.0);  // of 60
}

TEST(Learning, ScalarCriticsBringAPointMassToRest) {
  for (const NetworkBody network : {NetworkBody::kFastSac, NetworkBody::kPlain}) {
    LearnerSpec spec = point_mass_spec();
    spec.critic = CriticKind::kScalar;
    spec.network = network;
    const Returns returns = train<LearnerFastSac>(spec, 1000);
    EXPECT_LT(returns.before, 25.0);
    EXPECT_GT(returns.after, 48.0);  // of 60
  }
}

TEST(Learning, FlashSacBringsAPointMassToRest) {
  LearnerSpec spec = point_mass_spec();
  spec.algorithm = Algorithm::kFlashSac;
  spec.actor_hidden = 16;
  spec.critic_hidden = 16;
  spec.v_min = -5;
  spec.v_max = 5;
  spec.actor_lr = spec.critic_lr = spec.alpha_lr = 5e-3f;
  spec.tau = 0.1f;
  spec.weight_decay = 0.0f;
  spec.beta2 = 0.999f;
  spec.alpha_init = 0.01f;
  spec.target_entropy_ratio = 0.478f;
  spec.reward_scaling = RewardScaling::kEpisode;
  spec.noise_repeat_max = 16;
  const Returns returns = train<LearnerFlashSac>(spec, 1000);
  EXPECT_LT(returns.before, 25.0);
  EXPECT_GT(returns.after, 48.0);  // of 60
}

}  // namespace
}  // namespace millrace

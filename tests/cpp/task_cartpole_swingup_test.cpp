// Tests for task_cartpole_swingup.h on real physics: what is observed, and the end of an episode.
#include "task_cartpole_swingup.h"

#include <gtest/gtest.h>

#include <cmath>

#include "physics_mujoco.h"
#include "resources.h"
#include "update.h"

namespace millrace {
namespace {

struct Cart {
  nlohmann::json config = {{"task", "cartpole_swingup"}};
  WorkerPool pool{2};
  PhysicsMujoco physics;
  Task task;
  UpdateStep update;
  std::vector<float> rows;

  explicit Cart(int envs)
      : physics(sim_spec_of(config, resources()), envs, pool),
        task(make_task(config, physics.model())),
        update(task, physics.state_view(), envs, 2),
        rows(static_cast<size_t>(envs * task.layout.width())) {
    update.start_episodes(physics, true);
  }
  const float* next_observation(int env) const {
    return rows.data() + env * task.layout.width() + task.layout.next_observation();
  }
};

TEST(TaskCartpoleSwingup, ObservesCartAndPole) {
  Cart cart(1);
  EXPECT_EQ(cart.task.layout.observation_dim, 5);
  EXPECT_EQ(cart.task.layout.action_dim, 1);
  cart.update.actions()[0] = 0.7f;
  for (uint64_t tick = 0; tick < 40; ++tick) {
    cart.physics.step(cart.update.actions(), tick);
    cart.update.update(tick, 0, 1, cart.rows.data());
    const double* q = cart.physics.qpos(0);
    const double* v = cart.physics.qvel(0);
    const double expected[5] = {q[0], std::cos(q[1]), std::sin(q[1]), v[0], v[1]};
    for (int i = 0; i < 5; ++i) {
      ASSERT_NEAR(cart.next_observation(0)[i], expected[i], 1e-4) << tick << " " << i;
    }
    const float reward = cart.rows[static_cast<size_t>(cart.task.layout.reward())];
    ASSERT_NEAR(reward, (1 + std::cos(q[1])) / 2, 1e-5);
    cart.update.actions()[0] = 0.7f;
  }
  EXPECT_GT(cart.physics.qpos(0)[0], 0.1) << "a positive action pushes to +x";
}

TEST(TaskCartpoleSwingup, EpisodesAre500TicksAndOnlyTruncated) {
  Cart cart(4);
  const RowLayout& at = cart.task.layout;
  int full = 0;
  for (uint64_t tick = 0; tick < 1001; ++tick) {
    for (int env = 0; env < 4; ++env) {
      cart.update.actions()[env] = tick / 25 % 2 ? 1.0f : -1.0f;
    }
    cart.physics.step(cart.update.actions(), tick);
    cart.update.update(tick, 0, 4, cart.rows.data());
    for (int env = 0; env < 4; ++env) {
      const float* row = cart.rows.data() + env * at.width();
      ASSERT_EQ(row[at.done()], row[at.truncated()]);
    }
    cart.update.reset(tick, cart.physics);
    for (const EpisodeRecord& episode : cart.update.statistics().ended()) {
      EXPECT_EQ(episode.length, 500);
      EXPECT_GT(episode.episode_return, 0);
      EXPECT_LT(episode.episode_return, 500);
      EXPECT_EQ(cart.task.termination_names[static_cast<size_t>(episode.reason - 1)], "time_out");
      full += 1;
    }
  }
  EXPECT_GE(full, 4);
  EXPECT_EQ(cart.update.statistics().unstable_count(), 0u);
}

}  // namespace
}  // namespace millrace

// Tests for cpp/program_cpu.cpp. The ops themselves are tested with their own sources.
#include "program_cpu.h"

#include <gtest/gtest.h>

#include <cstring>

#include "fastsac_fixture.h"

namespace millrace {
namespace {

struct Trained {
  explicit Trained(uint64_t seed) : programs(small_spec(), small_layout()) {
    programs.workspace.allocate();
    programs.critic_statistics->clear();
    programs.actor_statistics->clear();
    float* actor = programs.workspace.floats(programs.actor_state.parameters);
    float* critic = programs.workspace.floats(programs.critic_state.parameters);
    programs.actor.initialise(actor, seed, 0, false);
    programs.critic.initialise(critic, seed, 1024, false);
    std::memcpy(programs.workspace.floats(programs.target), critic,
                programs.critic_state.count * sizeof(float));
    rows = random_rows(small_layout(), small_spec().batch, 1);
    arguments.rows = rows.data();
    arguments.row_stride = small_layout().width();
    arguments.seed = seed;
    arguments.actor_learning_rate = arguments.critic_learning_rate = arguments.alpha_learning_rate =
        1e-3f;
    arguments.target_rate = 0.1f;
  }

  std::vector<float> parameters() const {
    const float* values = programs.workspace.floats(programs.critic_state.parameters);
    return {values, values + programs.critic_state.count};
  }

  FastSacPrograms programs;
  std::vector<float> rows;
  Arguments arguments{};
};

// What varies between two launches of one program is in the arguments and the carriers alone.
TEST(ProgramCpu, TheSameArgumentsGiveTheSameBits) {
  Trained one(3), two(3), other(3);
  other.arguments.critic_learning_rate = 2e-3f;
  for (Trained* each : {&one, &two, &other}) {
    for (uint64_t tick = 0; tick < 3; ++tick) {
      each->arguments.tick = tick;
      run_on_cpu(*each->programs.whole_program, {each->programs.workspace, each->arguments});
    }
  }
  EXPECT_EQ(one.parameters(), two.parameters());
  EXPECT_NE(one.parameters(), other.parameters());
  EXPECT_EQ(*one.programs.workspace.counters(one.programs.critic_state.step), 3u);
  EXPECT_EQ(*one.programs.workspace.counters(one.programs.actor_state.step), 3u);
}

TEST(ProgramCpu, AnEmptyProgramDoesNothing) {
  Trained trained(3);
  const std::vector<float> before = trained.parameters();
  run_on_cpu(Program("empty", trained.programs.workspace),
             {trained.programs.workspace, trained.arguments});
  EXPECT_EQ(trained.parameters(), before);
}

}  // namespace
}  // namespace millrace

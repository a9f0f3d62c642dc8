// Tests for cpp/team.h: any team gives the bits of a single lane. Here the lanes are threads.
#include "team.h"

#include <gtest/gtest.h>

#include "lane_team.h"
#include "task_fixture.h"
#include "update.h"

namespace millrace {
namespace {

TEST(Team, LanesOfAnyNumberGiveTheBitsOfOne) {
  constexpr int kTicks = 12;
  for (int lanes : {2, 5, 32}) {
    const Task task = make_task({{"task", "g1_walk_flat"}}, g1_model());
    RandomSim sim(g1_model(), true, 1, 9);
    UpdateStep one(task, sim.state_view(), 1, 5), many(task, sim.state_view(), 1, 5);
    one.start_episodes(sim, false);
    many.start_episodes(sim, false);
    std::vector<float> expected(static_cast<size_t>(task.layout.width())), found(expected);
    for (uint64_t tick = 0; tick < kTicks; ++tick) {
      sim.step(nullptr, tick);
      for (int i = 0; i < task.layout.action_dim; ++i) {
        one.actions()[i] = many.actions()[i] = 0.01f * static_cast<float>(i);
      }
      if (tick == 7) one.actions()[9] = many.actions()[9] = std::nanf("");
      one.update(tick, 0, 1, expected.data());
      const UpdateArguments arguments = {5, tick, many.curriculum().scale()};
      run_team(lanes, [&](const LaneTeam& team) {
        update_environment(team, task.params, arguments, many.state(), 0, found.data());
      });
      ASSERT_EQ(found, expected) << lanes << " lanes, tick " << tick;
      for (size_t i = 0; i < one.carriers().size(); ++i) {
        const StateTensor& a = one.carriers()[i];
        ASSERT_EQ(std::memcmp(a.data, many.carriers()[i].data, a.bytes()), 0) << a.name;
      }
    }
  }
}

}  // namespace
}  // namespace millrace

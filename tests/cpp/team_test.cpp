// Tests for cpp/team.h: any team gives the bits of a single lane. Here the lanes are threads.
#include "team.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "task_fixture.h"
#include "update.h"

namespace millrace {
namespace {

class Barrier {
 public:
  explicit Barrier(int size) : size_(size), minimum_(INT32_MAX) {}

  // Waits for all lanes; returns the smallest value that they brought.
  int meet(int value) {
    std::unique_lock<std::mutex> lock(mutex_);
    minimum_ = std::min(minimum_, value);
    const uint64_t round = round_;
    if (++arrived_ == size_) {
      result_ = minimum_;
      minimum_ = INT32_MAX;
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ != round; });
    return result_;
  }

 private:
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0, minimum_, result_ = 0;
  uint64_t round_ = 0;
};

struct ThreadTeam {
  Barrier& barrier;
  int index, count;

  int lane() const { return index; }
  int size() const { return count; }
  bool leads() const { return index == 0; }
  void sync() const { barrier.meet(0); }
  int minimum(int value) const { return barrier.meet(value); }
};

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
      Barrier barrier(lanes);
      const UpdateArguments arguments = {5, tick, many.curriculum().scale()};
      std::vector<std::thread> threads;
      for (int lane = 0; lane < lanes; ++lane) {
        threads.emplace_back([&, lane] {
          update_environment(ThreadTeam{barrier, lane, lanes}, task.params, arguments, many.state(),
                             0, found.data());
        });
      }
      for (std::thread& thread : threads) thread.join();
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

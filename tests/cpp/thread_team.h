// A team whose lanes are threads: what a warp does, on the host.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace {

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

// Calls `act` once for every lane of a team, on a thread of its own.
template <class Act>
void run_as_team(int lanes, const Act& act) {
  Barrier barrier(lanes);
  std::vector<std::thread> threads;
  for (int lane = 0; lane < lanes; ++lane) {
    threads.emplace_back([&, lane] { act(ThreadTeam{barrier, lane, lanes}); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace millrace

// A team (team.h) whose lanes are threads, as a device's team would share a row: so that a body
// that forgets to wait, or lets two lanes write one place, shows on a machine without a device.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace {

class LaneRoom {
 public:
  explicit LaneRoom(int lanes) : lanes_(lanes), values_(static_cast<size_t>(lanes)) {}

  int lanes() const { return lanes_; }

  void meet() {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t round = round_;
    if (++arrived_ == lanes_) {
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ != round; });
  }

  void add(uint32_t* to, uint32_t value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    *to += value;
  }

  // What all lanes brought, by lane.
  std::vector<float> exchange(int lane, float value) {
    values_[static_cast<size_t>(lane)] = value;
    meet();
    const std::vector<float> all = values_;
    meet();
    return all;
  }

 private:
  const int lanes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  uint64_t round_ = 0;
  std::vector<float> values_;
};

struct LaneTeam {
  LaneRoom& room;
  int index;

  int lane() const { return index; }
  int size() const { return room.lanes(); }
  bool leads() const { return index == 0; }
  void sync() const { room.meet(); }
  int minimum(int value) const {  // of components and slots: floats hold them exactly
    float least = static_cast<float>(value);
    for (const float other : room.exchange(index, least)) least = other < least ? other : least;
    return static_cast<int>(least);
  }
  float maximum(float value) const {
    float top = value;
    for (const float other : room.exchange(index, value)) top = other > top ? other : top;
    return top;
  }
  float sum(float value) const {
    float sum = 0;
    for (const float other : room.exchange(index, value)) sum += other;
    return sum;
  }
  void add(uint32_t* to, uint32_t value) const { room.add(to, value); }
};

// Calls body(team) as every lane of a team of that many.
template <class Body>
void run_team(int lanes, const Body& body) {
  LaneRoom room(lanes);
  std::vector<std::thread> threads;
  for (int lane = 0; lane < lanes; ++lane) {
    threads.emplace_back([&, lane] { body(LaneTeam{room, lane}); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace millrace

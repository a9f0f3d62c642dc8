// Doorbell: how the threads of the replay wake each other without polling. A waiter reads the
// count, looks at the state it waits for, and sleeps only while the count has not moved since;
// whoever changes such state rings afterwards. No wake-up is lost: a ring between look and sleep
// moves the count. Any thread may call anything.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace millrace {

class Doorbell {
 public:
  uint64_t count() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return count_;
  }

  void ring() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++count_;
    }
    rung_.notify_all();
  }

  // Returns once the count differs from `seen`.
  void wait(uint64_t seen) const {
    std::unique_lock<std::mutex> lock(mutex_);
    rung_.wait(lock, [&] { return count_ != seen; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable rung_;
  uint64_t count_ = 0;
};

}  // namespace millrace

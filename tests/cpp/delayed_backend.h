// A device whose work happens only when the test says so: submissions queue up and step() runs the
// next one. step_or_reveal() does not show at once that an event is complete: events are revealed
// later and in any order, as when a host looks at them late. Sources are read
// when the work runs, so a slot that is reused too early shows. Device memory starts as NaN: a row
// that was never written shows as well. Waiting for an event runs the queue up to it. Any thread
// may call step().
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <vector>

#include "backend.h"

namespace millrace {

class DelayedDevice {
 public:
  struct Event {
    DelayedDevice* device;
    uint64_t recorded = 0;
    uint64_t revealed = 0;
  };

  static DelayedDevice& of(Backend& backend) {
    return *static_cast<DelayedDevice*>(backend.device());
  }

  // Runs the oldest piece of work and reveals all that is complete; false if there was neither.
  bool step() {
    std::lock_guard<std::mutex> lock(mutex_);
    const bool has_run = run_oldest();
    const bool has_hidden = !hidden_.empty();
    while (!hidden_.empty()) reveal(0);
    return has_run || has_hidden;
  }

  // Runs the oldest piece of work or reveals one event that is complete, as `pick` decides; false
  // if there is neither.
  bool step_or_reveal(uint64_t pick) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (hidden_.empty() || (!queue_.empty() && pick % 2 == 0)) return run_oldest();
    reveal(pick / 2 % hidden_.size());
    return true;
  }

  size_t queued() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_.size();
  }

  void enqueue(std::function<void()> work) {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(work));
  }

  void record(Event* event) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++event->recorded;
    queue_.push_back([this, event] { hidden_.push_back(event); });
  }

  bool is_complete(const Event* event) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return event->revealed == event->recorded;
  }

  void wait(Event* event) {
    std::lock_guard<std::mutex> lock(mutex_);
    while (pending(event) > 0) run_oldest();
    const auto is_it = [event](const Event* other) { return other == event; };
    hidden_.erase(std::remove_if(hidden_.begin(), hidden_.end(), is_it), hidden_.end());
    event->revealed = event->recorded;
  }

  void forget(const Event* event) {
    std::lock_guard<std::mutex> lock(mutex_);
    hidden_.erase(std::remove(hidden_.begin(), hidden_.end(), event), hidden_.end());
  }

 private:
  uint64_t pending(const Event* event) const {
    const uint64_t hidden =
        static_cast<uint64_t>(std::count(hidden_.begin(), hidden_.end(), event));
    return event->recorded - event->revealed - hidden;
  }

  void reveal(size_t at) {
    ++hidden_[at]->revealed;
    hidden_.erase(hidden_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  bool run_oldest() {
    if (queue_.empty()) return false;
    queue_.front()();
    queue_.pop_front();
    return true;
  }

  mutable std::mutex mutex_;
  std::deque<std::function<void()>> queue_;
  std::vector<Event*> hidden_;  // complete, but nobody has seen it
};

inline const BackendApi& delayed_backend() {
  struct Functions {
    static int open(void** device) {
      *device = new DelayedDevice;
      return 0;
    }
    static void close(void* device) { delete static_cast<DelayedDevice*>(device); }
    static int allocate_device(void*, uint64_t bytes, void** memory) {
      *memory = std::malloc(bytes);
      float* floats = static_cast<float*>(*memory);
      for (uint64_t i = 0; i < bytes / sizeof(float); ++i) {
        floats[i] = std::numeric_limits<float>::quiet_NaN();
      }
      return 0;
    }
    static void free_device(void*, void* memory) { std::free(memory); }
    static int create_stream(void* device, void** stream) {
      *stream = device;
      return 0;
    }
    static void destroy_stream(void*, void*) {}
    static int copy_async(void* stream, void* to, const void* from, uint64_t bytes) {
      return copy_2d_async(stream, to, bytes, from, bytes, bytes, 1);
    }
    static int copy_2d_async(void* stream, void* to, uint64_t to_pitch, const void* from,
                             uint64_t from_pitch, uint64_t row_bytes, uint64_t rows) {
      static_cast<DelayedDevice*>(stream)->enqueue([=] {
        backend_cpu().copy_2d_async(nullptr, to, to_pitch, from, from_pitch, row_bytes, rows);
      });
      return 0;
    }
    static int gather_async(void* stream, const Gather* gather) {
      const Gather work = *gather;
      static_cast<DelayedDevice*>(stream)->enqueue(
          [work] { backend_cpu().gather_async(nullptr, &work); });
      return 0;
    }
    static int create_event(void* device, int, void** event) {
      *event = new DelayedDevice::Event{static_cast<DelayedDevice*>(device)};
      return 0;
    }
    static void destroy_event(void*, void* event) {
      auto* delayed = static_cast<DelayedDevice::Event*>(event);
      delayed->device->forget(delayed);
      delete delayed;
    }
    static int record_event(void* stream, void* event) {
      static_cast<DelayedDevice*>(stream)->record(static_cast<DelayedDevice::Event*>(event));
      return 0;
    }
    static int query_event(void* event, int* is_complete) {
      auto* delayed = static_cast<DelayedDevice::Event*>(event);
      *is_complete = delayed->device->is_complete(delayed);
      return 0;
    }
    static int wait_event(void* event) {
      auto* delayed = static_cast<DelayedDevice::Event*>(event);
      delayed->device->wait(delayed);
      return 0;
    }
    static void last_error(void*, BackendError* error) { *error = {"none", "none", 0, "none"}; }
    static int memory_free_bytes(void*, uint64_t* bytes) {
      *bytes = uint64_t{1} << 40;
      return 0;
    }
  };
  static const BackendApi api = [] {
    BackendApi table = backend_cpu();
    table.name = "delayed";
    table.is_host_memory = 0;
    table.open = Functions::open;
    table.close = Functions::close;
    table.last_error = Functions::last_error;
    table.allocate_device = Functions::allocate_device;
    table.free_device = Functions::free_device;
    table.allocate_host = Functions::allocate_device;
    table.free_host = Functions::free_device;
    table.memory_free_bytes = Functions::memory_free_bytes;
    table.create_stream = Functions::create_stream;
    table.destroy_stream = Functions::destroy_stream;
    table.copy_async = Functions::copy_async;
    table.copy_2d_async = Functions::copy_2d_async;
    table.gather_async = Functions::gather_async;
    table.create_event = Functions::create_event;
    table.destroy_event = Functions::destroy_event;
    table.record_event = Functions::record_event;
    table.query_event = Functions::query_event;
    table.wait_event = Functions::wait_event;
    table.elapsed_ns = nullptr;  // nothing here takes time
    return table;
  }();
  return api;
}

}  // namespace millrace

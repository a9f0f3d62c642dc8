// A device whose work happens only when the test says so: submissions queue up, step() runs the
// next one, and an event is complete once everything before it ran. Sources are read when the work
// runs, so a slot that is reused too early shows. Device memory starts as NaN: a row that was never
// written shows as well. Waiting for an event runs the queue up to it. Any thread may call step().
#pragma once

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>

#include "backend.h"

namespace millrace {

class DelayedDevice {
 public:
  struct Event {
    DelayedDevice* device;
    uint64_t recorded = 0;
    uint64_t completed = 0;
  };

  static DelayedDevice& of(Backend& backend) {
    return *static_cast<DelayedDevice*>(backend.device());
  }

  // Runs the oldest piece of work; false if there is none.
  bool step() {
    std::lock_guard<std::mutex> lock(mutex_);
    return step_locked();
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
    queue_.push_back([event] { ++event->completed; });
  }

  bool is_complete(const Event* event) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return event->completed == event->recorded;
  }

  void wait(const Event* event) {
    std::lock_guard<std::mutex> lock(mutex_);
    while (event->completed != event->recorded) step_locked();
  }

 private:
  bool step_locked() {
    if (queue_.empty()) return false;
    queue_.front()();
    queue_.pop_front();
    return true;
  }

  mutable std::mutex mutex_;
  std::deque<std::function<void()>> queue_;
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
    static int create_event(void* device, void** event) {
      *event = new DelayedDevice::Event{static_cast<DelayedDevice*>(device)};
      return 0;
    }
    static void destroy_event(void*, void* event) {
      delete static_cast<DelayedDevice::Event*>(event);
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
  static const BackendApi api = {
      kBackendApiVersion,       "delayed",
      Functions::open,          Functions::close,
      Functions::last_error,    Functions::allocate_device,
      Functions::free_device,   Functions::allocate_device,
      Functions::free_device,   Functions::memory_free_bytes,
      Functions::create_stream, Functions::destroy_stream,
      Functions::copy_async,    Functions::copy_2d_async,
      Functions::gather_async,  Functions::create_event,
      Functions::destroy_event, Functions::record_event,
      Functions::query_event,   Functions::wait_event,
  };
  return api;
}

}  // namespace millrace

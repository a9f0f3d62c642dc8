// The CPU as a device whose memory the host must not touch, so that a run takes the way of a real
// device (a submit thread, batches delivered to the host, checkpoints through copies); and that
// device with a fault: the n-th call of one function fails.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "backend.h"

namespace millrace {

inline const BackendApi& remote_backend() {
  static const BackendApi api = [] {
    BackendApi table = backend_cpu();
    table.name = "remote";
    table.is_host_memory = 0;
    return table;
  }();
  return api;
}

// What fails and when; one fault at a time in a process.
class Fault {
 public:
  static constexpr int kCode = 77;
  static constexpr const char* kMeaning = "injected fault";

  static const std::vector<std::string>& functions() {
    static const std::vector<std::string> names = {
        "open",    "allocate_device", "allocate_host", "create_stream", "create_event", "copy",
        "copy_2d", "gather",          "update",        "record",        "query",        "wait"};
    return names;
  }

  // The call number `at`, from 0, of `function` fails and every later one of it.
  static void inject(const std::string& function, int64_t at) {
    name() = function;
    calls_left() = at;
    has_struck() = false;
  }
  static void clear() { name().clear(); }
  static bool struck() { return has_struck(); }

  static bool strikes(const char* function) {
    if (name() != function || calls_left().fetch_sub(1) > 0) return false;
    has_struck() = true;
    return true;
  }

 private:
  static std::string& name() {
    static std::string function;
    return function;
  }
  static std::atomic<int64_t>& calls_left() {
    static std::atomic<int64_t> count{0};
    return count;
  }
  static std::atomic<bool>& has_struck() {
    static std::atomic<bool> struck{false};
    return struck;
  }
};

// `inner` with the injected fault; the last inner backend counts.
inline const BackendApi& faulty_backend(const BackendApi& inner) {
  static const BackendApi* real;
  static BackendApi api;
  real = &inner;
  api = inner;
  api.name = "faulty";
  api.last_error = [](void* device, BackendError* error) {
    *error = {"injected", "remote_backend.h", Fault::kCode, Fault::kMeaning};
    if (!Fault::struck()) real->last_error(device, error);
  };
  api.open = [](void** device) {
    return Fault::strikes("open") ? Fault::kCode : real->open(device);
  };
  api.allocate_device = [](void* device, uint64_t bytes, void** memory) {
    return Fault::strikes("allocate_device") ? Fault::kCode
                                             : real->allocate_device(device, bytes, memory);
  };
  api.allocate_host = [](void* device, uint64_t bytes, void** memory) {
    return Fault::strikes("allocate_host") ? Fault::kCode
                                           : real->allocate_host(device, bytes, memory);
  };
  api.create_stream = [](void* device, void** stream) {
    return Fault::strikes("create_stream") ? Fault::kCode : real->create_stream(device, stream);
  };
  api.create_event = [](void* device, int is_timed, void** event) {
    return Fault::strikes("create_event") ? Fault::kCode
                                          : real->create_event(device, is_timed, event);
  };
  api.copy_async = [](void* stream, CopyDirection direction, void* to, const void* from,
                      uint64_t bytes) {
    return Fault::strikes("copy") ? Fault::kCode
                                  : real->copy_async(stream, direction, to, from, bytes);
  };
  api.copy_2d_async = [](void* stream, CopyDirection direction, void* to, uint64_t to_pitch,
                         const void* from, uint64_t from_pitch, uint64_t row_bytes, uint64_t rows) {
    return Fault::strikes("copy_2d") ? Fault::kCode
                                     : real->copy_2d_async(stream, direction, to, to_pitch, from,
                                                           from_pitch, row_bytes, rows);
  };
  api.gather_async = [](void* stream, const Gather* gather) {
    return Fault::strikes("gather") ? Fault::kCode : real->gather_async(stream, gather);
  };
  api.update_async = [](void* stream, const UpdateLaunch* launch) {
    return Fault::strikes("update") ? Fault::kCode : real->update_async(stream, launch);
  };
  api.record_event = [](void* stream, void* event) {
    return Fault::strikes("record") ? Fault::kCode : real->record_event(stream, event);
  };
  api.query_event = [](void* event, int* is_complete) {
    return Fault::strikes("query") ? Fault::kCode : real->query_event(event, is_complete);
  };
  api.wait_event = [](void* event) {
    return Fault::strikes("wait") ? Fault::kCode : real->wait_event(event);
  };
  return api;
}

}  // namespace millrace

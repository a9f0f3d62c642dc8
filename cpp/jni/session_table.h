// Handles that Java holds: generation << 32 | slot. A stale or foreign handle is a Failure(kState),
// never a crash. Any thread may look up; a session is freed only when no call is using it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "session.h"

namespace millrace::jni {

class SessionTable {
 public:
  int64_t add(std::unique_ptr<Session> session);
  // For stop() and error(): any thread.
  std::shared_ptr<Session> get(int64_t handle);
  // For everything else: throws when the caller is not the thread that opened the session.
  std::shared_ptr<Session> get_as_owner(int64_t handle);
  // Removes the handle; the caller, its owner, destroys the session.
  std::shared_ptr<Session> take(int64_t handle);

 private:
  struct Slot {
    uint32_t generation = 0;
    std::thread::id owner;
    std::shared_ptr<Session> session;
  };
  Slot& find(int64_t handle);

  std::mutex mutex_;
  std::vector<Slot> slots_;
};

}  // namespace millrace::jni

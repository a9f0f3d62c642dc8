#include "session_table.h"

namespace millrace::jni {

int64_t SessionTable::add(std::unique_ptr<Session> session) {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t index = 0;
  while (index < slots_.size() && slots_[index].session) ++index;
  if (index == slots_.size()) slots_.emplace_back();
  Slot& slot = slots_[index];
  slot.generation += 1;
  slot.owner = std::this_thread::get_id();
  slot.session = std::move(session);
  return static_cast<int64_t>(slot.generation) << 32 | static_cast<int64_t>(index);
}

SessionTable::Slot& SessionTable::find(int64_t handle) {
  const size_t index = static_cast<uint32_t>(handle);
  const uint32_t generation = static_cast<uint32_t>(handle >> 32);
  if (index >= slots_.size() || slots_[index].generation != generation || !slots_[index].session) {
    throw Failure(Code::kState, "the run is closed");
  }
  return slots_[index];
}

std::shared_ptr<Session> SessionTable::get(int64_t handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  return find(handle).session;
}

std::shared_ptr<Session> SessionTable::get_as_owner(int64_t handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  Slot& slot = find(handle);
  if (slot.owner != std::this_thread::get_id()) {
    throw Failure(Code::kState, "called from a thread that does not own the run");
  }
  return slot.session;
}

std::shared_ptr<Session> SessionTable::take(int64_t handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  Slot& slot = find(handle);
  if (slot.owner != std::this_thread::get_id()) {
    throw Failure(Code::kState, "closed from a thread that does not own the run");
  }
  return std::move(slot.session);
}

}  // namespace millrace::jni

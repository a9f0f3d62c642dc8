// What went wrong on a Metal device: operation, place, code and meaning. The first failure is kept
// until it is dealt with. One of work that was submitted poisons the device: what the GPU's memory
// holds is unknown from then on, so every later submission and wait fails with it, for ever. Any
// thread may call anything here.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <string>

#include "backend.h"

namespace millrace {

// Codes of ours; those of MTLCommandBufferErrorDomain are smaller.
enum MetalCode : int {
  kMetalUnavailable = 101,  // no device, or one that is too old
  kMetalCompile = 102,      // the kernels did not become pipelines
  kMetalOutOfMemory = 103,  // a buffer that could not be had
  kMetalRefused = 104,      // by Metal: it answered nil
  kMetalWrongThread = 105,  // not the thread that submits
  kMetalCapture = 106,      // what a replay object cannot hold
  kMetalNotMemory = 107,    // an address that the table did not hand out
  kMetalProgram = 108,      // an op that has no kernel here
};

class MetalErrors {
 public:
  // Returns the code, which is not 0.
  int keep(const char* operation, const char* site, int code, const std::string& meaning) {
    std::lock_guard<std::mutex> lock(mutex_);
    return keep_locked(operation, site, code, meaning);
  }

  int poison(const char* operation, const char* site, int code, const std::string& meaning) {
    std::lock_guard<std::mutex> lock(mutex_);
    keep_locked(operation, site, code, meaning);
    if (poison_.code == 0) {
      texts_.push_back(meaning);
      poison_ = {operation, site, code, texts_.back().c_str()};
      is_poisoned_.store(true, std::memory_order_release);
    }
    return code;
  }

  bool is_poisoned() const { return is_poisoned_.load(std::memory_order_acquire); }

  // 0, or the code of what poisoned the device.
  int check() {
    if (!is_poisoned()) return 0;
    std::lock_guard<std::mutex> lock(mutex_);
    if (first_.code == 0) first_ = poison_;
    return poison_.code;
  }

  void forget() {
    std::lock_guard<std::mutex> lock(mutex_);
    first_ = kNone;
  }

  BackendError first() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return first_;
  }

 private:
  int keep_locked(const char* operation, const char* site, int code, const std::string& meaning) {
    if (first_.code != 0) return code;
    texts_.push_back(meaning);
    first_ = {operation, site, code, texts_.back().c_str()};
    return code;
  }

  static constexpr BackendError kNone{"none", "none", 0, "no error"};

  mutable std::mutex mutex_;
  std::deque<std::string> texts_;  // a BackendError's meaning stays where it is
  BackendError first_ = kNone, poison_ = kNone;
  std::atomic<bool> is_poisoned_{false};
};

#define MR_TEXT(x) #x
#define MR_LINE_TEXT(x) MR_TEXT(x)
#define MR_SITE __FILE__ ":" MR_LINE_TEXT(__LINE__)

}  // namespace millrace

// Failure: what every module of the core throws; the JNI guard turns it into a Java exception, and
// nothing else crosses a module as an exception. FirstError: one cell per run; the first writer
// wins, later ones are counted, every wait that fails afterwards names the first.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

namespace millrace {

enum class Code {
  kInvalid,      // the caller's input: configuration, model, checkpoint
  kState,        // called in the wrong state
  kResource,     // memory, files
  kUnavailable,  // device or library that is not here
  kDevice,       // a device reported an error; the run has failed
  kBug           // a broken invariant of ours
};

const char* to_string(Code code);

class Failure : public std::runtime_error {
 public:
  Failure(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

struct Error {
  std::string operation;  // what was being done, e.g. "collector.step"
  uint64_t sequence;      // its tick or receipt sequence
  std::string thread;
  Code code;
  std::string message;
};

// Any thread may call anything here.
class FirstError {
 public:
  // Returns true if this was the first.
  bool set(Error error);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  std::optional<Error> get() const;
  uint64_t later_count() const { return later_.load(std::memory_order_relaxed); }
  // Throws Failure naming the first error if there is one.
  void check() const;

 private:
  mutable std::mutex mutex_;
  std::optional<Error> error_;
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> later_{0};
};

// Throws Failure(kBug) naming file and line; always on.
#define MR_CHECK(condition, message)                                                \
  do {                                                                              \
    if (!(condition)) {                                                             \
      throw ::millrace::Failure(                                                    \
          ::millrace::Code::kBug,                                                   \
          std::string(__FILE__ ":") + std::to_string(__LINE__) + ": " + (message)); \
    }                                                                               \
  } while (false)

}  // namespace millrace

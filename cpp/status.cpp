#include "status.h"

#include <utility>

namespace millrace {

const char* to_string(Code code) {
  switch (code) {
    case Code::kInvalid:
      return "invalid";
    case Code::kState:
      return "state";
    case Code::kResource:
      return "resource";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kDevice:
      return "device";
    case Code::kBug:
      return "bug";
  }
  return "unknown";
}

bool FirstError::set(Error error) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (error_) {
    later_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  error_ = std::move(error);
  failed_.store(true, std::memory_order_release);
  return true;
}

std::optional<Error> FirstError::get() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return error_;
}

void FirstError::check() const {
  if (!failed()) return;
  const Error first = *get();
  throw Failure(first.code, first.message + " (in " + first.operation + " " +
                                std::to_string(first.sequence) + " on thread " + first.thread +
                                ")");
}

}  // namespace millrace

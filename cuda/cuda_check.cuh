// What a call of the CUDA runtime that failed leaves behind: operation, place, code and meaning.
// The first failure of a device is kept until it is dealt with; what follows is usually its echo.
// Any thread may call anything here.
#pragma once

#include <cuda_runtime.h>

#include <mutex>

#include "backend.h"

namespace millrace {

class CudaErrors {
 public:
  // Returns the code: 0 for success.
  int keep(const char* operation, const char* site, cudaError_t code) {
    if (code == cudaSuccess) return 0;
    cudaGetLastError();  // this thread's next failure must be its own
    std::lock_guard<std::mutex> lock(mutex_);
    if (first_.code == 0) {
      first_ = {operation, site, static_cast<int>(code), cudaGetErrorString(code)};
    }
    return static_cast<int>(code);
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
  mutable std::mutex mutex_;
  static constexpr BackendError kNone{"none", "none", 0, "no error"};
  BackendError first_ = kNone;
};

#define MR_TEXT(x) #x
#define MR_LINE_TEXT(x) MR_TEXT(x)

// Calls function(...) of the CUDA runtime, keeps its failure in `errors`, and is its code.
#define MR_CUDA(errors, function, ...) \
  (errors).keep(#function, __FILE__ ":" MR_LINE_TEXT(__LINE__), function(__VA_ARGS__))

}  // namespace millrace

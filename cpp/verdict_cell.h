// VerdictCell: where the workers of the CPU report the verdicts of a tick (verdict.h). report() may
// be called by any worker; complete() by the thread that waited for all of them, once per tick;
// first() by any thread, and it never changes once it is bad.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "verdict.h"

namespace millrace {

const char* to_string(VerdictKind kind);

class VerdictCell {
 public:
  void report(const Verdict& verdict);
  void complete(uint64_t tick);

  Verdict first() const;
  // Environments found bad, of completed ticks.
  uint64_t bad_count() const { return bad_count_.load(std::memory_order_acquire); }

 private:
  std::atomic<u64> pending_key_{~u64{0}};
  std::atomic<uint64_t> pending_count_{0};
  std::atomic<uint64_t> bad_count_{0};
  mutable std::mutex mutex_;
  Verdict first_{};
};

}  // namespace millrace

#include "verdict_cell.h"

namespace millrace {

const char* to_string(VerdictKind kind) {
  switch (kind) {
    case kVerdictGood:
      return "good";
    case kVerdictObservation:
      return "observation is not finite";
    case kVerdictCritic:
      return "critic observation is not finite";
    case kVerdictReward:
      return "reward is not finite";
    case kVerdictAction:
      return "action is not finite";
    case kVerdictPhysics:
      return "physics is unstable";
  }
  return "unknown";
}

void VerdictCell::report(const Verdict& verdict) {
  const u64 key = verdict_key(verdict);
  u64 lowest = pending_key_.load(std::memory_order_relaxed);
  while (key < lowest && !pending_key_.compare_exchange_weak(lowest, key)) {
  }
  pending_count_.fetch_add(1, std::memory_order_relaxed);
}

void VerdictCell::complete(uint64_t tick) {
  const uint64_t count = pending_count_.exchange(0);
  if (count == 0) return;
  const Verdict found = verdict_from_key(pending_key_.exchange(verdict_key_none()), tick);
  std::lock_guard<std::mutex> lock(mutex_);
  first_ = verdict_merge(first_, found);
  bad_count_.fetch_add(count, std::memory_order_release);
}

Verdict VerdictCell::first() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return first_;
}

}  // namespace millrace

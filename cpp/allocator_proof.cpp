#include "allocator_proof.h"

namespace millrace {

namespace {

int64_t difference(uint64_t now, uint64_t then) { return static_cast<int64_t>(now - then); }

int64_t graph_growth(const MemoryCensus& now, const MemoryCensus& then) {
  return difference(now.graph_used_bytes + now.graph_reserved_bytes,
                    then.graph_used_bytes + then.graph_reserved_bytes);
}

int64_t pool_growth(const MemoryCensus& now, const MemoryCensus& then) {
  return difference(now.pool_used_bytes + now.pool_reserved_bytes,
                    then.pool_used_bytes + then.pool_reserved_bytes);
}

std::string grew(const char* what, int64_t bytes) {
  return std::string(what) + " changed by " + std::to_string(bytes) + " bytes during a run";
}

}  // namespace

void AllocatorProof::begin() {
  own_epoch_ = backend_.memory_epoch();
  own_changes_ = 0;
  first_ = latest_ = backend_.memory_census();
}

std::optional<std::string> AllocatorProof::check_own() {
  own_changes_ = backend_.memory_epoch() - own_epoch_;
  if (own_changes_ == 0) return std::nullopt;
  return "ALLOC_IN_WINDOW: " + std::to_string(own_changes_) +
         " blocks of device or pinned memory were allocated or freed, the last at " +
         backend_.memory_site();
}

void AllocatorProof::before_run() { before_ = backend_.memory_census(); }

std::optional<std::string> AllocatorProof::after_run() {
  latest_ = backend_.memory_census();
  ++runs_;
  device_growth_ += difference(latest_.device_used_bytes, before_.device_used_bytes);
  const int64_t graph = graph_growth(latest_, first_);
  const int64_t pool = pool_growth(latest_, first_);
  if (graph != 0) return "ALLOC_IN_WINDOW: " + grew("memory of graph nodes", graph);
  if (pool != 0) return "ALLOC_IN_WINDOW: " + grew("the stream-ordered pool", pool);
  if (device_growth_ != 0) {
    return "ALLOC_IN_WINDOW: " + grew("memory in use on the device", device_growth_);
  }
  return std::nullopt;
}

nlohmann::json AllocatorProof::describe() const {
  return {{"own_changes", own_changes_},
          {"graph_bytes", graph_growth(latest_, first_)},
          {"pool_bytes", pool_growth(latest_, first_)},
          {"device_bytes", device_growth_},
          {"runs", runs_}};
}

}  // namespace millrace

#include "graph_residency.h"

#include <algorithm>

namespace millrace {

namespace {

constexpr size_t kUsesOfAWindow = 4;  // for each graph that fits
constexpr size_t kMissesOfThrashing = 2;

}  // namespace

GraphResidency::Use GraphResidency::use(uint64_t id, uint64_t bytes) {
  Use use = {};
  const uint64_t now_ns = now_();
  const auto is_it = [id](const Resident& each) { return each.id == id; };
  const auto found = std::find_if(residents_.begin(), residents_.end(), is_it);
  use.is_resident = found != residents_.end();
  if (use.is_resident) {
    found->used_ns = now_ns;
    residents_.splice(residents_.end(), residents_, found);
  }
  while (!residents_.empty() && now_ns - residents_.front().used_ns > limits_.idle_ns) {
    evict(residents_.begin(), use.gone);
  }
  note(!use.is_resident);
  if (use.is_resident) return use;
  use.may_capture = !is_thrashing_ && bytes <= limits_.most_bytes && limits_.most_graphs > 0;
  if (!use.may_capture) return use;
  while (residents_.size() >= limits_.most_graphs || bytes_ + bytes > limits_.most_bytes) {
    evict(residents_.begin(), use.gone);
  }
  residents_.push_back({id, bytes, now_ns});
  bytes_ += bytes;
  return use;
}

void GraphResidency::evict(std::list<Resident>::iterator which, std::vector<uint64_t>& gone) {
  gone.push_back(which->id);
  bytes_ -= which->bytes;
  residents_.erase(which);
  ++evictions_;
}

void GraphResidency::note(bool is_miss) {
  ++(is_miss ? misses_ : hits_);
  recent_.push_back(is_miss);
  recent_misses_ += is_miss ? 1 : 0;
  if (recent_.size() > kUsesOfAWindow * limits_.most_graphs) {
    recent_misses_ -= recent_.front() ? 1 : 0;
    recent_.pop_front();
  }
  if (is_thrashing_ || recent_misses_ <= kMissesOfThrashing * limits_.most_graphs) return;
  is_thrashing_ = true;
  reason_ = std::to_string(recent_misses_) + " of the last " + std::to_string(recent_.size()) +
            " runs needed a graph that was not there, and only " +
            std::to_string(limits_.most_graphs) + " fit: no more are captured";
}

nlohmann::json GraphResidency::describe() const {
  return {{"resident", residents_.size()},
          {"bytes", bytes_},
          {"hits", hits_},
          {"misses", misses_},
          {"evictions", evictions_},
          {"thrashing", is_thrashing_},
          {"reason", reason_}};
}

}  // namespace millrace

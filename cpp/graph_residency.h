// GraphResidency: which of many graphs stay in memory. Least recently used first, a graph goes when
// all together hold too many bytes, when there are too many, or when it was not used for long. When
// captures follow each other faster than they can pay (more misses in a window of uses than twice
// what fits), the site stops capturing and says so: what is resident stays, everything else runs
// eagerly. Pure bookkeeping; the caller captures and destroys. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profile.h"

namespace millrace {

class GraphResidency {
 public:
  struct Limits {
    uint64_t most_bytes;
    size_t most_graphs;
    uint64_t idle_ns;
  };
  struct Use {
    bool is_resident;            // replay it
    bool may_capture;            // else, if it is not resident: run eagerly
    std::vector<uint64_t> gone;  // destroy these first
  };

  GraphResidency(const Limits& limits, ClockNs now) : limits_(limits), now_(std::move(now)) {}

  // Graph `id` of so many bytes is to run now. If it may be captured it counts as resident from
  // here on.
  Use use(uint64_t id, uint64_t bytes);

  bool is_thrashing() const { return is_thrashing_; }
  // Why nothing more is captured; empty: captures go on.
  const std::string& reason() const { return reason_; }
  uint64_t bytes() const { return bytes_; }
  // {resident, bytes, hits, misses, evictions, thrashing, reason}
  nlohmann::json describe() const;

 private:
  struct Resident {
    uint64_t id, bytes, used_ns;
  };
  void evict(std::list<Resident>::iterator which, std::vector<uint64_t>& gone);
  void note(bool is_miss);

  const Limits limits_;
  const ClockNs now_;
  std::list<Resident> residents_;  // least recently used first
  uint64_t bytes_ = 0, hits_ = 0, misses_ = 0, evictions_ = 0;
  std::deque<bool> recent_;  // the last uses: was it a miss?
  size_t recent_misses_ = 0;
  bool is_thrashing_ = false;
  std::string reason_;
};

}  // namespace millrace

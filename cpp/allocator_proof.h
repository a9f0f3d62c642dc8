// AllocatorProof: whether anything was allocated while a program ran. Three kinds of memory:
//   our own        every block of this backend, by count and site; exact, over the whole time
//   graphs, pools  what nodes of graphs and allocations in stream order hold; exact
//   device         what the whole card has in use; other processes count, so it is compared only
//                  within one run of the program, from before its launch until it is complete
// A change is a reason for the program's graph to end: it holds addresses. There is no way round
// it; only the graph can be off. All calls on the submit thread; describe() when it rests.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "backend.h"

namespace millrace {

class AllocatorProof {
 public:
  explicit AllocatorProof(Backend& backend) : backend_(backend) {}

  // What there is now is what there must be from here on.
  void begin();
  // Compares one number; the reason if something of ours was allocated or freed.
  std::optional<std::string> check_own();
  // Around one run: what the device and the driver hold. The reason if it changed.
  void before_run();
  std::optional<std::string> after_run();

  uint64_t runs() const { return runs_; }  // that before_run() and after_run() enclosed
  // {own_changes, graph_bytes, pool_bytes, device_bytes, runs} as last looked at: differences, so
  // all but runs are 0.
  nlohmann::json describe() const;

 private:
  Backend& backend_;
  uint64_t own_epoch_ = 0, own_changes_ = 0;
  MemoryCensus first_ = {};
  MemoryCensus before_ = {}, latest_ = {};
  int64_t device_growth_ = 0;
  uint64_t runs_ = 0;
};

}  // namespace millrace

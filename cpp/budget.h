// Budget: what a run will allocate, as sums with one named addend per line, and what speaks against
// it before anything large is allocated. Sums saturate: an absurd size is refused, not wrapped.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "finding.h"
#include "layout.h"
#include "pipeline.h"

namespace millrace {

struct BudgetLine {
  std::string name;
  uint64_t bytes;
  std::string formula;  // "2 x 512 rows x 1,720 B"
};

struct Budget {
  std::vector<BudgetLine> lines;
  uint64_t free_bytes;  // what is available now

  uint64_t total_bytes() const;
  uint64_t limit_bytes() const;  // 0.8 of what is available
  bool fits() const { return total_bytes() <= limit_bytes(); }
};

// {items: [{name, bytes, formula}], total_bytes, free_bytes, limit_bytes}
nlohmann::json to_json(const Budget& budget);

// Throws Failure(kResource) with the arithmetic unless it fits; `memory` says whose: "host",
// "cuda".
void require_fits(const Budget& budget, const char* memory);

struct HostMemory {
  uint64_t bytes;
  std::string source;  // "MemAvailable" or "cgroup limit"
};

// The smaller of the machine's available memory and what the process's control group has left
// (its page cache counts as left). `root` is "" except in tests.
HostMemory available_host_memory(const std::string& root = "");

struct ReplayPlan {
  RowLayout layout;
  uint64_t num_envs;
  uint64_t capacity_rows;
  uint64_t ingress_depth;
  uint64_t batch;  // rows the learner sees; with symmetry half of them are gathered
  uint64_t updates_per_tick;
  uint64_t learning_starts;  // ticks
  bool symmetry;
  uint64_t learner_bytes;
  uint64_t policy_bytes;       // what acts; it lies where the learner does
  bool is_device_host_memory;  // the CPU backend: the ring lies in host memory, too
  bool is_learner_on_device = true;
  Pipeline pipeline = Pipeline::kDeviceResident;

  uint64_t threshold_rows() const;  // max(batch, learning_starts * num_envs)
  uint64_t sample_rows() const;     // gathered per tick
};

// Ingress slots; and what else the pipeline and the learner keep on the host beside a device.
Budget replay_host_budget(const ReplayPlan& plan, uint64_t free_bytes);
// Ring, batches, learner and policy, as far as they lie on the device.
Budget replay_device_budget(const ReplayPlan& plan, uint64_t free_bytes);

// Everything that speaks against the plan, all at once; empty means it can run.
std::vector<Finding> check_replay(const ReplayPlan& plan, uint64_t host_free_bytes,
                                  uint64_t device_free_bytes);
// On the CPU: both are the host's available memory.
std::vector<Finding> check_replay(const ReplayPlan& plan);

std::string grouped(uint64_t number);  // "5,120"

}  // namespace millrace

// RunPlan: what the core reads from a resolved configuration, checked key by key. Java has already
// checked names and types against its own records; the ranges are checked here, once, for both.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "learner.h"
#include "replay.h"

namespace millrace {

struct RunPlan {
  std::string task;
  uint64_t seed;
  std::string device, graph, precision;  // as requested
  int num_envs;
  int threads;  // physics and update workers; 0 = auto
  bool synchronous;
  uint64_t max_lead_ticks;
  std::string update;  // where the update step runs, as requested: auto, host, device
  Pipeline pipeline;
  uint64_t capacity_rows;
  int ingress_depth;
  LearnerSpec learner;

  uint64_t gathered_rows_per_tick() const;
  uint64_t threshold_rows() const;
  // `slots`: where the update step packs rows; `batches`: where the learner reads.
  ReplaySpec replay_spec(const RowLayout& layout, Place slots = Place::kHost,
                         Place batches = Place::kHost) const;
};

// Throws Failure(kInvalid) naming the key, the value and what is allowed.
RunPlan parse_plan(const nlohmann::json& config);

}  // namespace millrace

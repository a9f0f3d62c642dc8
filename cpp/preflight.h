// Preflight of the core: everything that speaks against a configuration, all at once, before any
// large allocation. A refusal is data; only input that is not a configuration at all throws.
#pragma once

#include <nlohmann/json.hpp>

#include "backend.h"
#include "finding.h"
#include "run_plan.h"
#include "status.h"
#include "task.h"

namespace millrace {

// The report that NativeCore.preflight documents.
nlohmann::json run_preflight(const nlohmann::json& config);

// The first finding against a graph of the update step, for GraphSpec::obstacle; empty = none.
std::string graph_obstacle(const Task& task, const RunPlan& plan, Backend& backend);

// What it says when require_mujoco_version() failed.
Finding other_mujoco(const Failure& failure);

}  // namespace millrace

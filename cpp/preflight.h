// Preflight of the core: everything that speaks against a configuration, all at once, before any
// large allocation. A refusal is data; only input that is not a configuration at all throws.
#pragma once

#include <nlohmann/json.hpp>

#include "finding.h"
#include "status.h"

namespace millrace {

// The report that NativeCore.preflight documents.
nlohmann::json run_preflight(const nlohmann::json& config);

// What it says when require_mujoco_version() failed.
Finding other_mujoco(const Failure& failure);

}  // namespace millrace

// Preflight of the core: everything that speaks against a configuration, all at once, before any
// large allocation. A refusal is data; only input that is not a configuration at all throws.
#pragma once

#include <nlohmann/json.hpp>

namespace millrace {

// The report that NativeCore.preflight documents.
nlohmann::json run_preflight(const nlohmann::json& config);

}  // namespace millrace

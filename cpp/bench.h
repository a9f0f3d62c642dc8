// Bench: dispatches a request {kind: "physics" | "replay" | "update" | "train" | "graphs", …} to
// the bench of that name.
#pragma once

#include <nlohmann/json.hpp>

namespace millrace {

nlohmann::json run_bench(const nlohmann::json& request);

}  // namespace millrace

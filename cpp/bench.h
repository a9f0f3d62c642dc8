// Bench: dispatches a request {kind: "physics" | "train", …} to the bench of that name and adds
// what makes reports comparable: version, processor, configuration.
#pragma once

#include <nlohmann/json.hpp>

namespace millrace {

nlohmann::json run_bench(const nlohmann::json& request);

}  // namespace millrace

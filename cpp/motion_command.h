// The commands `motion info|convert|make` as one request and one report (NativeCore.motion
// documents both). Any thread.
#pragma once

#include <nlohmann/json.hpp>

namespace millrace {

// Throws Failure(kInvalid) for a request that is incomplete or a motion that does not fit.
nlohmann::json run_motion(const nlohmann::json& request);

}  // namespace millrace

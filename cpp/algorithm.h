// What learns, as a configuration's `algo` names it.
#pragma once

#include <string>

namespace millrace {

enum class Algorithm { kFastSac, kFlashSac };

// Throws Failure(kInvalid) for another name.
Algorithm algorithm_named(const std::string& name);
const char* to_string(Algorithm algorithm);

}  // namespace millrace

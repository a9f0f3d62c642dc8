// Catalog: what this library is and knows, as data: versions, processor, memory, backends with
// their reasons, tasks and terms. Any thread.
#pragma once

#include <nlohmann/json.hpp>

namespace millrace {

// The report that NativeCore.describe documents.
nlohmann::json describe_library();

}  // namespace millrace

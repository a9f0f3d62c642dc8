// One program in more shapes than graphs fit: what keeping, evicting and giving up graphs costs.
#pragma once

#include <nlohmann/json.hpp>

#include "backend.h"

namespace millrace {

// -> {shapes, most_graphs, uses, traffic: [{name, ways: {eager: {median_us, p99_us, captures},
// graph, scg}, residency}]}. Times are of the second half of the uses, each waited for. `graph`
// captures what is not there and evicts the least recently used; `scg` does so until the residency
// says that it does not pay. A backend without graphs runs eagerly alone.
nlohmann::json bench_shapes(const BackendApi& api);

}  // namespace millrace

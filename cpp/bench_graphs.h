// What each way of running a program costs, over the programs of the gallery.
#pragma once

#include <nlohmann/json.hpp>

#include "backend.h"

namespace millrace {

// {kind: "graphs", backend, case?, rounds?, input_mib?} -> {backend, graphs (or why there are
// none), rounds, cases: [{name, about, programs, ways: {eager: {median_us, p99_us, mad_us,
// coverage, copied_bytes_per_run, setup_ms, device_bytes, reason}, graph, cgct, cgct_pi, scg},
// selections, transform?, profile_ms}], many_shapes?, break_even?}. Ways are measured interleaved,
// each run with its argument block; before that every way computes the same runs, and another bit
// in any carrier throws kDevice. A backend without graphs runs eagerly alone.
nlohmann::json bench_graphs(const nlohmann::json& request);
// The same on a backend that a test brings.
nlohmann::json bench_graphs(const nlohmann::json& request, const BackendApi& api);

}  // namespace millrace

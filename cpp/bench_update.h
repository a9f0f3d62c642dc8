// How long the update step takes: on a backend eagerly and as a graph, on the host's workers, and
// at least, by the bytes that it must move.
#pragma once

#include <nlohmann/json.hpp>

namespace millrace {

// {kind: "update", backend, config (resolved, with resources_dir), envs, runs, launches, threads}
// -> {configuration…, medians: {eager_us, graph_us?, arguments_us, host_us, floor_us, floor_ratio},
// iqr, ticks: {eager: {median_us, p99_us, ticks}, graph?}, rounds}. The figures of a round are of
// launches back to back; ticks are timed one by one, each with its argument block. Robots are
// stepped a few ticks first; launches are of ticks that follow.
nlohmann::json bench_update(const nlohmann::json& request);

}  // namespace millrace

// bench replay: seeded rows straight into ingress, no environment and no learner, on any backend.
//
// serial: publish -> copy -> commit -> gather, one after the other, each awaited; `total_us` is
// from the publish of a slot whose rows are written to the observed end of the gather. prefetch:
// the same work inside a synthetic update of 4 x 1 ms that calls progress(false) before each
// millisecond; `boundary_us` is what is left at the boundary, and `ready_ticks` counts the ticks
// whose batch was complete there. The last batch of every run is compared with the rows that it
// must hold.
#pragma once

#include <nlohmann/json.hpp>

namespace millrace {

// request: {backend "cpu", mode "serial", envs 512, capacity_rows 4096, depth 2, sample_rows 2048,
// observation_dim 98, action_dim 29, critic_dim 101, runs 5, ticks 30, counted 20, seed 1}.
// Returns what was asked for and {device, row_width, row_stride_bytes, untimed_ticks (rounds that
// fill the ring, so that it wraps at least 3 times), wraps, host_bytes, device_bytes, rounds: [one
// object of medians per run], medians, iqr (over the counted ticks of all runs), ready_ticks,
// counted_ticks, verified}.
nlohmann::json bench_replay(const nlohmann::json& request);

}  // namespace millrace

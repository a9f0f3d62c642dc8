// The limits of a device that the replay is measured against, and how near its own work comes to
// them: device copy and gather, pinned copy and the copy of a slot into the ring, the host's time
// to submit one.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "backend.h"
#include "batch_layout.h"

namespace millrace {

struct BandwidthSpec {
  RowLayout layout;
  BatchLayout batch_layout;
  uint64_t envs;  // rows of a slot
  uint64_t capacity_rows;
  uint64_t sample_rows;
  uint64_t runs;
  uint64_t seed;
};

// {medians: {…}, iqr: {…}, rounds: [{…}], gathers_in_a_graph}; names end in their unit. Bandwidths
// of copies on the device and of gathers count bytes read and written, of others bytes moved.
nlohmann::json bench_bandwidth(Backend& backend, const BandwidthSpec& spec);

}  // namespace millrace

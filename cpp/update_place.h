// UpdatePlace: where the update step of a run is executed. Resolved once, the same way by preflight
// and by the run. On a device it packs rows into slots in device memory, so whatever reads slots on
// the host keeps it there.
#pragma once

#include <string>

#include "backend.h"
#include "run_plan.h"

namespace millrace {

struct UpdatePlace {
  bool is_on_device;
  // Why it is on the host, as a finding: empty on the device.
  std::string id;       // "HOST_READ"
  std::string subject;  // the configuration key it is about
  std::string reason;
};

// `device` holds the replay.
UpdatePlace choose_update_place(const RunPlan& plan, const BackendApi& device);

}  // namespace millrace

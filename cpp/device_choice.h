// DeviceChoice: which backend holds the replay of a run. Resolved once, the same way by preflight
// and by the run: `auto` takes the device that everything can run on and that was verified on one
// of its kind, and says why not another; a device that was named and cannot be had is a refusal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace millrace {

struct DeviceChoice {
  std::string requested;
  std::string effective;  // "none" if it cannot be had
  std::string learner;    // where the learner runs
  std::string reason;
  std::string verified;  // of the effective device, or of one that cannot be had: BackendInfo
};

// Throws Failure(kInvalid) for an unknown name.
DeviceChoice choose_device(const std::string& requested);
// {requested, effective, learner, verified, reason}
nlohmann::json to_json(const DeviceChoice& choice);

}  // namespace millrace

#include "device_choice.h"

#include "backend.h"
#include "status.h"

namespace millrace {

namespace {

BackendInfo info_of(const std::string& name) {
  for (BackendInfo& info : backends()) {
    if (info.name == name) return info;
  }
  throw Failure(Code::kInvalid, "device '" + name + "' is not one of auto, cpu, cuda, metal");
}

// Why `auto` passes a device by.
std::string passed_by(const char* name) {
  const BackendInfo info = info_of(name);
  if (!info.available) return std::string(name) + ": " + info.reason;
  return std::string(name) + ": the learner does not run there yet; device: " + name +
         " puts the replay there";
}

}  // namespace

DeviceChoice choose_device(const std::string& requested) {
  if (requested == "auto") {
    return {"auto", "cpu", "cpu", passed_by("cuda") + "; " + passed_by("metal")};
  }
  const BackendInfo info = info_of(requested);
  if (!info.available) return {requested, "none", "none", info.reason};
  if (requested == "cpu") return {requested, requested, "cpu", "requested"};
  return {requested, requested, "cpu",
          "requested; holds the replay (" + info.device + "), the learner runs on the cpu"};
}

nlohmann::json to_json(const DeviceChoice& choice) {
  return {{"requested", choice.requested},
          {"effective", choice.effective},
          {"learner", choice.learner},
          {"reason", choice.reason}};
}

}  // namespace millrace

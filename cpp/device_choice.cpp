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
std::string passed_by(const BackendInfo& info) { return info.name + ": " + info.reason; }

}  // namespace

DeviceChoice choose_device(const std::string& requested) {
  if (requested == "auto") {
    const BackendInfo cuda = info_of("cuda");
    if (cuda.available) return {"auto", "cuda", "cuda", "is there: " + cuda.device};
    return {"auto", "cpu", "cpu", passed_by(cuda) + "; " + passed_by(info_of("metal"))};
  }
  const BackendInfo info = info_of(requested);
  if (!info.available) return {requested, "none", "none", info.reason};
  if (requested == "cpu") return {requested, requested, "cpu", "requested"};
  return {requested, requested, requested, "requested: " + info.device};
}

nlohmann::json to_json(const DeviceChoice& choice) {
  return {{"requested", choice.requested},
          {"effective", choice.effective},
          {"learner", choice.learner},
          {"reason", choice.reason}};
}

}  // namespace millrace

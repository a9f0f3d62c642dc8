#include "device_choice.h"

#include "backend.h"
#include "status.h"

namespace millrace {

namespace {

constexpr const char* kVerifiedOnDevice = "device";

BackendInfo info_of(const std::string& name) {
  for (BackendInfo& info : backends()) {
    if (info.name == name) return info;
  }
  throw Failure(Code::kInvalid, "device '" + name + "' is not one of auto, cpu, cuda, metal");
}

// Why `auto` passes a device by: it is not there, or nobody has seen it compute on one.
std::string passed_by(const BackendInfo& info) {
  if (!info.available) return info.name + ": " + info.reason;
  return info.name + ": is there (" + info.device + "), but was verified on no more than the " +
         info.verified + "; name it to use it";
}

DeviceChoice choose_automatically() {
  std::string reasons;
  for (const char* name : {"cuda", "metal"}) {
    const BackendInfo info = info_of(name);
    if (info.available && info.verified == kVerifiedOnDevice) {
      return {"auto", name, name, "is there: " + info.device, info.verified};
    }
    reasons += (reasons.empty() ? "" : "; ") + passed_by(info);
  }
  return {"auto", "cpu", "cpu", reasons, info_of("cpu").verified};
}

}  // namespace

DeviceChoice choose_device(const std::string& requested) {
  if (requested == "auto") return choose_automatically();
  const BackendInfo info = info_of(requested);
  if (!info.available) return {requested, "none", "none", info.reason, info.verified};
  if (requested == "cpu") return {requested, requested, "cpu", "requested", info.verified};
  return {requested, requested, requested, "requested: " + info.device, info.verified};
}

nlohmann::json to_json(const DeviceChoice& choice) {
  return {{"requested", choice.requested},
          {"effective", choice.effective},
          {"learner", choice.learner},
          {"verified", choice.verified},
          {"reason", choice.reason}};
}

}  // namespace millrace

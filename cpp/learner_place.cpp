#include "learner_place.h"

#include "backend.h"

namespace millrace {

namespace {

bool has(const BackendApi& api, Precision precision) {
  return (api.precisions & precision_bit(precision)) != 0;
}

std::string all_of(const BackendApi& api) {
  std::string names;
  for (const Precision each : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    if (has(api, each)) names += (names.empty() ? "" : ", ") + std::string(to_string(each));
  }
  return names;
}

}  // namespace

LearnerPlace choose_learner_place(const RunPlan& plan, const BackendApi& api) {
  LearnerPlace place = {api.is_host_memory == 0 && plan.learner.place != "host", Precision::kFp32,
                        "", "", false};
  place.is_policy_on_device = place.is_on_device && api.has_one_submit_thread == 0;
  if (plan.learner.place == "device" && !place.is_on_device) {
    place.obstacle =
        std::string("device was requested, but the ") + api.name + " backend is the host itself";
    place.subject = "learner.place";
    return place;
  }
  const BackendApi& runner = place.is_on_device ? api : backend_cpu();
  if (plan.precision == "auto") {
    place.precision = has(runner, Precision::kTf32) ? Precision::kTf32 : Precision::kFp32;
    return place;
  }
  for (const Precision each : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    if (plan.precision == to_string(each)) place.precision = each;
  }
  if (!has(runner, place.precision)) {
    place.obstacle = std::string("the learner runs on ") + runner.name + ", which computes in " +
                     all_of(runner) + ", not " + plan.precision;
    place.subject = "precision";
  }
  return place;
}

}  // namespace millrace

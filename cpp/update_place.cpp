#include "update_place.h"

namespace millrace {

UpdatePlace choose_update_place(const RunPlan& plan, const BackendApi& device) {
  const std::string the_backend = std::string("the ") + device.name + " backend";
  if (device.is_host_memory != 0) {
    return {false, "BACKEND_HAS_NO_GRAPHS", "device",
            the_backend + " runs the update step on the workers' threads"};
  }
  if (device.has_one_submit_thread != 0) {
    return {false, "UPDATE_ON_HOST", "device",
            the_backend + " has one queue, where robots would wait for the learner's updates"};
  }
  if (plan.update == "host") {
    return {false, "UPDATE_ON_HOST", "collector.update", "collector.update: host was requested"};
  }
  if (plan.pipeline == Pipeline::kCpuPinnedDoubleBuffer) {
    return {false, "HOST_READ", "replay.pipeline",
            "cpu_pinned_double_buffer keeps the ring in host memory, where rows must be packed"};
  }
  if (plan.learner.observation_normalizer) {
    return {false, "HOST_READ", "learner.observation_normalizer",
            "the normaliser reads every packed row on the host"};
  }
  return {true, "", "", ""};
}

}  // namespace millrace

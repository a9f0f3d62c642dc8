#include "update_place.h"

namespace millrace {

UpdatePlace choose_update_place(const RunPlan& plan, const std::string& device,
                                bool is_host_memory) {
  if (is_host_memory) {
    return {false, "BACKEND_HAS_NO_GRAPHS", "device",
            "the " + device + " backend runs the update step on the workers' threads"};
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

#include "pipeline.h"

#include "status.h"

namespace millrace {

const char* to_string(Pipeline pipeline) {
  return pipeline == Pipeline::kDeviceResident ? "device_resident" : "cpu_pinned_double_buffer";
}

Pipeline pipeline(const std::string& name) {
  for (Pipeline pipeline : {Pipeline::kDeviceResident, Pipeline::kCpuPinnedDoubleBuffer}) {
    if (name == to_string(pipeline)) return pipeline;
  }
  throw Failure(Code::kInvalid,
                "pipeline '" + name + "' is not one of device_resident, cpu_pinned_double_buffer");
}

}  // namespace millrace

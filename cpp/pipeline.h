// Pipeline: where the replay's rows live between the collector and the learner.
//   device_resident           one ring in device memory; the gather runs there
//   cpu_pinned_double_buffer  one ring in host memory; the CPU gathers into two pinned buffers and,
//                             for a learner on the device, a copy follows one tick ahead
// Same seed, same rows, same batches in both.
#pragma once

#include <string>

namespace millrace {

enum class Pipeline { kDeviceResident, kCpuPinnedDoubleBuffer };

// Where the learner reads its batches.
enum class Place { kDevice, kHost };

// Throws Failure(kInvalid) for an unknown name.
Pipeline pipeline(const std::string& name);
const char* to_string(Pipeline pipeline);

}  // namespace millrace

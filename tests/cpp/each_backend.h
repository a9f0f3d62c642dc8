// For tests of the backend contract: they run on every backend that this machine has, so that the
// same binary covers a device where there is one, and on Metal's modules over their fake device.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend.h"
#include "fake_metal.h"
#include "kernel_backend.h"

namespace millrace {

inline std::vector<std::string> available_backends() {
  std::vector<std::string> names;
  for (const BackendInfo& info : backends()) {
    if (info.available) names.push_back(info.name);
  }
  return names;
}

// The name, or nothing where it was not built.
inline std::vector<std::string> fake_metal_backends() {
  return has_fake_metal() ? std::vector<std::string>{kFakeMetal} : std::vector<std::string>{};
}

// These and Metal's modules on their fake device: for tests of how a device is driven.
inline std::vector<std::string> driven_backends() {
  std::vector<std::string> names = available_backends();
  for (const std::string& name : fake_metal_backends()) names.push_back(name);
  return names;
}

// These and the kernels of Metal and CUDA on the CPU: for tests of what a device computes.
inline std::vector<std::string> computing_backends() {
  std::vector<std::string> names = available_backends();
  for (const BackendApi* api : {&metal_kernels(), &cuda_kernels()}) names.push_back(api->name);
  return names;
}

inline const BackendApi& test_backend_api(const std::string& name) {
  if (name == kFakeMetal) return fake_metal();
  for (const BackendApi* api : {&metal_kernels(), &cuda_kernels()}) {
    if (name == api->name) return *api;
  }
  return backend_api(name);
}

inline std::string backend_of_test(const testing::TestParamInfo<std::string>& info) {
  return info.param;
}

#define MR_ON_EACH_BACKEND(suite) \
  INSTANTIATE_TEST_SUITE_P(On, suite, testing::ValuesIn(driven_backends()), backend_of_test)

#define MR_ON_EACH_COMPUTING_BACKEND(suite) \
  INSTANTIATE_TEST_SUITE_P(On, suite, testing::ValuesIn(computing_backends()), backend_of_test)

// For what would take a CPU in the place of a GPU too long.
#define MR_ON_EACH_REAL_BACKEND(suite) \
  INSTANTIATE_TEST_SUITE_P(On, suite, testing::ValuesIn(available_backends()), backend_of_test)

#define MR_ON_FAKE_METAL(suite)                                                      \
  INSTANTIATE_TEST_SUITE_P(OnMetal, suite, testing::ValuesIn(fake_metal_backends()), \
                           backend_of_test)

// Copies between a test's vectors and a backend's memory, each time waiting for it; on one thread.
class Transfer {
 public:
  explicit Transfer(Backend& backend) : stream_(backend), event_(backend) {}

  std::vector<float> read(const float* memory, uint64_t count) {
    std::vector<float> values(count);
    copy(CopyDirection::kDeviceToHost, values.data(), memory, count);
    return values;
  }
  void write(float* memory, const std::vector<float>& values) {
    copy(CopyDirection::kHostToDevice, memory, values.data(), values.size());
  }

 private:
  void copy(CopyDirection direction, float* to, const float* from, uint64_t count) {
    const uint64_t bytes = count * sizeof(float);
    stream_.copy_rows(direction, to, bytes, from, bytes, bytes, 1);
    stream_.record(event_);
    event_.wait();
  }

  Stream stream_;
  Event event_;
};

}  // namespace millrace

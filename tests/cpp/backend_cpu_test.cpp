// Tests for cpp/backend_cpu.cpp: what only the CPU promises. What every backend promises is in
// backend_contract_test.cpp.
#include <gtest/gtest.h>

#include <vector>

#include "backend.h"

namespace millrace {
namespace {

TEST(BackendCpu, IsAlwaysThereAndNamesItself) {
  EXPECT_STREQ(backend_cpu().name, "cpu");
  EXPECT_EQ(&backend_api("cpu"), &backend_cpu());
  EXPECT_GT(Backend(backend_cpu()).memory_free_bytes(), 0u);
}

TEST(BackendCpu, WorkIsDoneWhenItIsSubmitted) {
  Backend backend(backend_cpu());
  Stream stream(backend);
  Event event(backend);
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  const Memory device(backend, Memory::Kind::kDevice, 2 * 4 * sizeof(float));
  // Two rows of three floats, to rows of four.
  stream.copy_rows(CopyDirection::kHostToDevice, device.floats(), 4 * sizeof(float), rows.data(),
                   3 * sizeof(float), 3 * sizeof(float), 2);
  stream.record(event);
  EXPECT_TRUE(event.is_complete());
  EXPECT_EQ(std::vector<float>(device.floats(), device.floats() + 8),
            (std::vector<float>{1, 2, 3, 0, 4, 5, 6, 0}));
}

}  // namespace
}  // namespace millrace

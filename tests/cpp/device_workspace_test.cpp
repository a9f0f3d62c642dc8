// Tests for cpp/device_workspace.cpp: carriers there and back, and which precisions there are. What
// programs compute there is tested in program_launch_test.cpp.
#include "device_workspace.h"

#include <gtest/gtest.h>

#include "each_backend.h"

namespace millrace {
namespace {

class DeviceWorkspaceTest : public testing::TestWithParam<std::string> {};

MR_ON_EACH_BACKEND(DeviceWorkspaceTest);

struct Host {
  Host() {
    state = workspace.add_floats("state", 70);
    counter = workspace.add("counter", DType::kU64, 3);
    between = workspace.add_transient("between", 5);
    sum.rows = 5;
    sum.width = 1;
    sum.values = between;
    sum.sums = state;
    program.record(sum);
  }

  Workspace workspace;
  Operand state, counter, between;
  ColumnSumOp sum{};
  Program program{"sum", workspace};
};

TEST_P(DeviceWorkspaceTest, CarriersGoThereAndBackAllOrOneAlone) {
  Host host;
  host.workspace.allocate(Workspace::Contents::kState);
  EXPECT_EQ(host.workspace.addresses()[static_cast<size_t>(host.between.carrier)], nullptr);
  Backend backend(test_backend_api(GetParam()));
  Stream stream(backend);
  DeviceWorkspace device(backend, stream, host.workspace, {&host.program}, Precision::kFp32);
  EXPECT_EQ(device.bytes(), DeviceWorkspace::bytes_needed(backend.api(), host.workspace,
                                                          {&host.program}, Precision::kFp32));
  float* state = host.workspace.floats(host.state);
  uint64_t* counter = host.workspace.counters(host.counter);
  state[69] = 1.5f;
  counter[2] = 9;
  device.upload();
  state[69] = 0;
  counter[2] = 0;
  device.download(host.counter);
  EXPECT_EQ(counter[2], 9u);
  EXPECT_EQ(state[69], 0.0f);
  device.download();
  EXPECT_EQ(state[69], 1.5f);
  state[69] = 2.5f;
  counter[2] = 10;
  device.upload(host.state);
  device.download();
  EXPECT_EQ(state[69], 2.5f);
  EXPECT_EQ(counter[2], 9u);
  // Transient carriers start at zero, too.
  state[0] = 1.0f;
  device.upload();
  device.submit(host.program);
  device.download();
  EXPECT_EQ(state[0], 0.0f);
}

TEST_P(DeviceWorkspaceTest, APrecisionThatTheBackendLacksIsRefused) {
  Host host;
  host.workspace.allocate();
  Backend backend(test_backend_api(GetParam()));
  Stream stream(backend);
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    const auto make = [&] {
      DeviceWorkspace(backend, stream, host.workspace, {&host.program}, precision);
    };
    if ((backend.api().precisions & precision_bit(precision)) != 0) {
      EXPECT_NO_THROW(make());
      continue;
    }
    try {
      make();
      ADD_FAILURE() << to_string(precision);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Code::kUnavailable);
      EXPECT_NE(std::string(failure.what()).find(to_string(precision)), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace millrace

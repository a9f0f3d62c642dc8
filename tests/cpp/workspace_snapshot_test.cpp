// Tests for cpp/workspace_snapshot.cpp.
#include "workspace_snapshot.h"

#include <gtest/gtest.h>

#include "graph_backends.h"

namespace millrace {
namespace {

class WorkspaceSnapshotTest : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(On, WorkspaceSnapshotTest,
                         testing::Values(std::string("fake_cuda"), std::string("cpu")),
                         backend_of_test);

TEST_P(WorkspaceSnapshotTest, RestoresWhatOutlivesARunAndNothingElse) {
  Workspace workspace;
  const Operand state = workspace.add_floats("state", 3);
  const Operand transient = workspace.add_transient("transient", 5);
  const Operand count = workspace.add("count", DType::kU64, 1);
  workspace.allocate();
  Backend backend(graph_backend_api(GetParam()));
  Stream stream(backend);
  DeviceWorkspace device(backend, stream, workspace, {}, Precision::kFp32);
  WorkspaceSnapshot snapshot(backend, stream, device);
  EXPECT_EQ(snapshot.bytes(), 3 * sizeof(float) + sizeof(uint64_t));
  const auto set = [&](float value) {
    for (u32 i = 0; i < 3; ++i) *workspace.floats(state + i) = value;
    *workspace.floats(transient + 4) = value;
    *workspace.counters(count) = static_cast<uint64_t>(value);
    device.upload();
  };
  set(7);
  snapshot.save();
  set(9);
  snapshot.restore();
  device.download();
  EXPECT_EQ(*workspace.floats(state + 2), 7);
  EXPECT_EQ(*workspace.counters(count), 7u);
  EXPECT_EQ(*workspace.floats(transient + 4), 9);
}

}  // namespace
}  // namespace millrace

#include "workspace_snapshot.h"

#include <algorithm>

namespace millrace {

WorkspaceSnapshot::WorkspaceSnapshot(Backend& backend, Stream& stream,
                                     const DeviceWorkspace& workspace)
    : stream_(stream),
      workspace_(workspace),
      memory_(backend, Memory::Kind::kDevice,
              bytes_needed(workspace.host(), workspace.precision())) {}

uint64_t WorkspaceSnapshot::bytes_needed(const Workspace& workspace, Precision precision) {
  return std::max<uint64_t>(DeviceWorkspace::state_bytes(workspace, precision), sizeof(float));
}

void WorkspaceSnapshot::save() { copy(false); }
void WorkspaceSnapshot::restore() { copy(true); }

void WorkspaceSnapshot::copy(bool is_restore) {
  char* kept = reinterpret_cast<char*>(memory_.floats());
  for (const DeviceWorkspace::Span& live : workspace_.state()) {
    stream_.copy(CopyDirection::kDeviceToDevice, is_restore ? live.address : kept,
                 is_restore ? kept : live.address, live.bytes);
    kept += live.bytes;
  }
}

}  // namespace millrace

#include "workspace_snapshot.h"

#include <algorithm>

namespace millrace {

namespace {

uint64_t state_bytes(const Workspace::Carrier& carrier) {
  return carrier.is_transient ? 0 : carrier.count * bytes_of(carrier.dtype);
}

}  // namespace

WorkspaceSnapshot::WorkspaceSnapshot(Backend& backend, Stream& stream,
                                     const DeviceWorkspace& workspace)
    : stream_(stream),
      workspace_(workspace),
      memory_(backend, Memory::Kind::kDevice, bytes_needed(workspace.host())) {}

uint64_t WorkspaceSnapshot::bytes_needed(const Workspace& workspace) {
  uint64_t total = 0;
  for (const Workspace::Carrier& carrier : workspace.carriers()) total += state_bytes(carrier);
  return std::max<uint64_t>(total, sizeof(float));
}

void WorkspaceSnapshot::save() { copy(false); }
void WorkspaceSnapshot::restore() { copy(true); }

void WorkspaceSnapshot::copy(bool is_restore) {
  char* kept = reinterpret_cast<char*>(memory_.floats());
  const std::vector<Workspace::Carrier>& carriers = workspace_.host().carriers();
  for (size_t i = 0; i < carriers.size(); ++i) {
    const uint64_t bytes = state_bytes(carriers[i]);
    if (bytes == 0) continue;
    void* live = workspace_.floats({static_cast<int>(i), 0});
    stream_.copy(CopyDirection::kDeviceToDevice, is_restore ? live : kept, is_restore ? kept : live,
                 bytes);
    kept += bytes;
  }
}

}  // namespace millrace

// WorkspaceSnapshot: what a DeviceWorkspace holds from one run to the next, kept in the backend's
// memory while something is tried out. Carriers that only one update writes and reads again are
// left out. Allocates when it is constructed, and nothing later. On the submit thread.
#pragma once

#include <memory>

#include "device_workspace.h"

namespace millrace {

class WorkspaceSnapshot {
 public:
  WorkspaceSnapshot(Backend& backend, Stream& stream, const DeviceWorkspace& workspace);
  static uint64_t bytes_needed(const Workspace& workspace, Precision precision);

  // Both enqueue.
  void save();
  void restore();
  uint64_t bytes() const { return memory_.bytes(); }

 private:
  void copy(bool is_restore);

  Stream& stream_;
  const DeviceWorkspace& workspace_;
  Memory memory_;
};

}  // namespace millrace

// DeviceMemory: device memory as the checkpoint reads and writes it, piece by piece and waiting for
// each: on a stream of its own, while nothing else works on that memory. On the thread that made
// it.
#pragma once

#include <cstdint>

#include "backend.h"
#include "state_registry.h"

namespace millrace {

class DeviceMemory final : public RemoteMemory {
 public:
  DeviceMemory(Backend& backend, const Memory& memory);

  void read(uint64_t offset, void* to, uint64_t bytes) override;
  void write(uint64_t offset, const void* from, uint64_t bytes) override;

 private:
  void copy(void* to, const void* from, uint64_t bytes);

  const Memory& memory_;
  Stream stream_;
  Event event_;
};

}  // namespace millrace

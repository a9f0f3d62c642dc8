#include "device_memory.h"

namespace millrace {

DeviceMemory::DeviceMemory(Backend& backend, const Memory& memory)
    : memory_(memory), stream_(backend), event_(backend) {}

void DeviceMemory::read(uint64_t offset, void* to, uint64_t bytes) {
  copy(to, reinterpret_cast<const char*>(memory_.floats()) + offset, bytes);
}

void DeviceMemory::write(uint64_t offset, const void* from, uint64_t bytes) {
  copy(reinterpret_cast<char*>(memory_.floats()) + offset, from, bytes);
}

void DeviceMemory::copy(void* to, const void* from, uint64_t bytes) {
  stream_.copy(to, from, bytes);
  stream_.record(event_);
  event_.wait();
}

}  // namespace millrace

#include "metal_memory.h"

#include <algorithm>

namespace millrace {

namespace {

constexpr uint64_t kLeastBytes = 16;  // there are no buffers of none

}  // namespace

void* MetalMemory::allocate(Kind kind, uint64_t bytes) {
  if (bytes > [device_ maxBufferLength]) return nullptr;
  const BufferRef buffer =
      BufferRef::adopt([device_ newBufferWithLength:std::max(bytes, kLeastBytes)
                                            options:MTLResourceStorageModeShared]);
  if (!buffer) return nullptr;
  const uintptr_t address = kind == Kind::kDevice
                                ? static_cast<uintptr_t>([buffer.get() gpuAddress])
                                : reinterpret_cast<uintptr_t>([buffer.get() contents]);
  std::lock_guard<std::mutex> lock(mutex_);
  of(kind)[address] = buffer;
  return reinterpret_cast<void*>(address);
}

BufferRef MetalMemory::release(Kind kind, void* memory) {
  std::lock_guard<std::mutex> lock(mutex_);
  Blocks& blocks = of(kind);
  const auto found = blocks.find(reinterpret_cast<uintptr_t>(memory));
  if (found == blocks.end()) return {};
  BufferRef buffer = found->second;
  blocks.erase(found);
  return buffer;
}

const MetalMemory::Blocks::value_type* MetalMemory::block_of(const Blocks& blocks, uintptr_t at,
                                                             uint64_t bytes) {
  auto block = blocks.upper_bound(at);
  if (block == blocks.begin()) return nullptr;
  --block;
  const uint64_t offset = at - block->first, length = [block->second.get() length];
  return offset <= length && bytes <= length - offset ? &*block : nullptr;
}

std::optional<uint64_t> MetalMemory::gpu_address(const void* host, uint64_t bytes) const {
  const uintptr_t at = reinterpret_cast<uintptr_t>(host);
  std::lock_guard<std::mutex> lock(mutex_);
  const Blocks::value_type* block = block_of(host_blocks_, at, bytes);
  if (block == nullptr) return std::nullopt;
  return [block->second.get() gpuAddress] + (at - block->first);
}

bool MetalMemory::has_device_memory(const void* address, uint64_t bytes) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return block_of(device_blocks_, reinterpret_cast<uintptr_t>(address), bytes) != nullptr;
}

std::vector<BufferRef> MetalMemory::all() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<BufferRef> buffers;
  buffers.reserve(device_blocks_.size() + host_blocks_.size());
  for (const Blocks* blocks : {&device_blocks_, &host_blocks_}) {
    for (const auto& block : *blocks) buffers.push_back(block.second);
  }
  return buffers;
}

uint64_t MetalMemory::bytes() const {
  uint64_t total = 0;
  for (const BufferRef& buffer : all()) total += [buffer.get() length];
  return total;
}

}  // namespace millrace

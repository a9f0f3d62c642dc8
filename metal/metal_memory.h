// The memory of a Metal device: every block that the table handed out, by the address that it was
// handed out as. Device memory goes by its GPU address, host memory by its CPU address; both are
// shared buffers. Objective-C++ only; any thread.
#pragma once

#import <Metal/Metal.h>

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "objc_ref.h"

namespace millrace {

using BufferRef = objc_ref<id<MTLBuffer>>;

class MetalMemory {
 public:
  enum class Kind { kDevice, kHost };

  explicit MetalMemory(id<MTLDevice> device) : device_(device) {}
  MetalMemory(const MetalMemory&) = delete;
  MetalMemory& operator=(const MetalMemory&) = delete;

  // Zeroed, as newBufferWithLength: promises; null when there is no room.
  void* allocate(Kind kind, uint64_t bytes);
  // The block's buffer, for who must keep it until the GPU is through; empty for no block.
  BufferRef release(Kind kind, void* memory);

  // Where the GPU finds bytes of host memory; none: the memory is not of this table.
  std::optional<uint64_t> gpu_address(const void* host, uint64_t bytes) const;
  bool has_device_memory(const void* address, uint64_t bytes) const;

  // Every block, of both kinds: what a pass declares to use.
  std::vector<BufferRef> all() const;
  uint64_t bytes() const;

 private:
  using Blocks = std::map<uintptr_t, BufferRef>;
  static const Blocks::value_type* block_of(const Blocks& blocks, uintptr_t at, uint64_t bytes);
  Blocks& of(Kind kind) { return kind == Kind::kDevice ? device_blocks_ : host_blocks_; }

  const id<MTLDevice> device_;
  mutable std::mutex mutex_;
  Blocks device_blocks_, host_blocks_;  // by first address
};

}  // namespace millrace

// A replay object: dispatches that were captured, as an indirect command buffer with the kernels'
// arguments in one buffer beside it. Encoded once and never edited, so it may be in flight any
// number of times; what varies between replays is read through the argument block that the
// arguments point to. Each command waits for the ones before it. Objective-C++ only.
#pragma once

#import <Metal/Metal.h>

#include <memory>

#include "metal_dispatch.h"
#include "metal_errors.h"
#include "metal_memory.h"
#include "metal_pipelines.h"

namespace millrace {

class MetalGraph {
 public:
  // Null, and the reason in `errors`, for what an indirect command buffer cannot hold. All
  // dispatches are kernels.
  static std::unique_ptr<MetalGraph> make(id<MTLDevice> device, const MetalPipelines& pipelines,
                                          const std::vector<MetalDispatch>& dispatches,
                                          MetalErrors& errors);

  id<MTLIndirectCommandBuffer> commands() const { return commands_.get(); }
  id<MTLBuffer> arguments() const { return arguments_.get(); }
  size_t size() const { return size_; }

 private:
  MetalGraph() = default;

  objc_ref<id<MTLIndirectCommandBuffer>> commands_;  // none of an empty graph
  BufferRef arguments_;
  size_t size_ = 0;
};

}  // namespace millrace

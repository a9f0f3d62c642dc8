#include "metal_graph.h"

#include <cstring>

namespace millrace {

namespace {

constexpr uint64_t kAlignment = 32;          // of arguments; more than any of their members asks
constexpr uint64_t kMaxOffset = UINT32_MAX;  // of a buffer's binding in an indirect command
constexpr NSUInteger kArgumentsIndex = 0;

uint64_t padded(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

MTLSize grid_of(const MetalDispatch& dispatch) {
  return MTLSizeMake(dispatch.threadgroups[0], dispatch.threadgroups[1], dispatch.threadgroups[2]);
}

objc_ref<id<MTLIndirectCommandBuffer>> new_commands(id<MTLDevice> device, size_t count) {
  const auto descriptor = objc_ref<MTLIndirectCommandBufferDescriptor*>::adopt(
      [[MTLIndirectCommandBufferDescriptor alloc] init]);
  descriptor.get().commandTypes = MTLIndirectCommandTypeConcurrentDispatch;
  descriptor.get().inheritBuffers = NO;
  descriptor.get().inheritPipelineState = NO;
  descriptor.get().maxKernelBufferBindCount = kArgumentsIndex + 1;
  descriptor.get().maxKernelThreadgroupMemoryBindCount = 1;
  return objc_ref<id<MTLIndirectCommandBuffer>>::adopt([device
      newIndirectCommandBufferWithDescriptor:descriptor.get()
                             maxCommandCount:count
                                     options:MTLResourceStorageModeShared]);
}

}  // namespace

std::unique_ptr<MetalGraph> MetalGraph::make(id<MTLDevice> device, const MetalPipelines& pipelines,
                                             const std::vector<MetalDispatch>& dispatches,
                                             MetalErrors& errors) {
  std::unique_ptr<MetalGraph> graph(new MetalGraph);
  graph->size_ = dispatches.size();
  if (dispatches.empty()) return graph;
  uint64_t bytes = 0;
  for (const MetalDispatch& dispatch : dispatches) bytes += padded(dispatch.arguments.size());
  if (bytes > kMaxOffset) {
    errors.keep("end_capture", MR_SITE, kMetalCapture,
                "arguments of a replay object lie within 4 GiB, these take " +
                    std::to_string(bytes) + " bytes");
    return nullptr;
  }
  graph->arguments_ = BufferRef::adopt([device newBufferWithLength:bytes
                                                           options:MTLResourceStorageModeShared]);
  graph->commands_ = new_commands(device, dispatches.size());
  if (!graph->arguments_ || !graph->commands_) {
    errors.keep("newIndirectCommandBuffer", MR_SITE, kMetalRefused,
                "no replay object of " + std::to_string(dispatches.size()) + " commands");
    return nullptr;
  }
  uint64_t offset = 0;
  for (size_t i = 0; i < dispatches.size(); ++i) {
    const MetalDispatch& dispatch = dispatches[i];
    std::memcpy(static_cast<char*>([graph->arguments() contents]) + offset,
                dispatch.arguments.data(), dispatch.arguments.size());
    id<MTLComputePipelineState> pipeline = pipelines.of(dispatch, "end_capture", errors);
    if (pipeline == nil) return nullptr;
    id<MTLIndirectComputeCommand> command = [graph->commands() indirectComputeCommandAtIndex:i];
    [command setComputePipelineState:pipeline];
    [command setKernelBuffer:graph->arguments() offset:offset atIndex:kArgumentsIndex];
    if (dispatch.threadgroup_bytes > 0) {
      [command setThreadgroupMemoryLength:dispatch.threadgroup_bytes atIndex:0];
    }
    if (i > 0) [command setBarrier];
    [command concurrentDispatchThreadgroups:grid_of(dispatch)
                      threadsPerThreadgroup:MTLSizeMake(dispatch.threads, 1, 1)];
    offset += padded(dispatch.arguments.size());
  }
  return graph;
}

}  // namespace millrace

// Indirect command buffers of the fake device.
#include "fake_metal_objects.h"

using namespace metal_shim;

namespace {

constexpr NSUInteger kMaxIndirectOffset = UINT32_MAX;

}  // namespace

@implementation FakeIndirectCommand
- (void)edit:(const char*)what {
  std::lock_guard<std::mutex> lock(buffer_->device_->state_->mutex);
  if (buffer_->in_flight_ > 0) {
    violation(std::string(what) + ": an indirect command buffer was edited in flight");
  }
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)pipelineState {
  [self edit:"setComputePipelineState"];
  if (pipelineState == nil || ![pipelineState supportIndirectCommandBuffers]) {
    violation("an indirect command's pipeline does not support indirect command buffers");
  }
  command_.pipeline = (FakePipeline*)pipelineState;
}
- (void)setKernelBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  [self edit:"setKernelBuffer"];
  if (index >= buffer_->bindings_) {
    violation("buffer index " + std::to_string(index) + " of an indirect command with " +
              std::to_string(buffer_->bindings_) + " bindings");
  }
  if (offset > kMaxIndirectOffset) violation("an indirect command's offset is beyond 4 GiB");
  if (index != 0) return;
  command_.block = ((FakeBuffer*)buffer)->block_;
  command_.offset = offset;
  command_.has_arguments = true;
}
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
  [self edit:"setThreadgroupMemoryLength"];
  if (index >= buffer_->threadgroup_bindings_) violation("an index of threadgroup memory too high");
  command_.threadgroup_bytes = length;
}
- (void)setBarrier {
  [self edit:"setBarrier"];
  command_.has_barrier = true;
}
- (void)concurrentDispatchThreadgroups:(MTLSize)threadgroupsPerGrid
                 threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup {
  [self edit:"concurrentDispatchThreadgroups"];
  command_.grid = threadgroupsPerGrid;
  command_.threads = threadsPerThreadgroup;
  command_.is_dispatched = true;
}
@end

@implementation FakeIndirectCommandBuffer
- (id)initWithDevice:(FakeDevice*)device
          descriptor:(MTLIndirectCommandBufferDescriptor*)descriptor
               count:(NSUInteger)count {
  self = [super init];
  device_ = [device retain];
  if (descriptor.commandTypes != MTLIndirectCommandTypeConcurrentDispatch) {
    violation("an indirect command buffer of other commands than dispatches of threadgroups");
  }
  if (descriptor.inheritBuffers || descriptor.inheritPipelineState) {
    violation("an indirect command buffer that inherits what it should hold");
  }
  bindings_ = descriptor.maxKernelBufferBindCount;
  if (bindings_ > kMaxBufferIndex + 1) violation("an indirect command buffer of over 31 bindings");
  threadgroup_bindings_ = descriptor.maxKernelThreadgroupMemoryBindCount;
  commands_ = [[NSMutableArray alloc] init];
  for (NSUInteger i = 0; i < count; ++i) {
    FakeIndirectCommand* command = [[FakeIndirectCommand alloc] init];
    command->buffer_ = self;
    [commands_ addObject:command];
    [command release];
  }
  return self;
}
- (void)dealloc {
  if (in_flight_ > 0) violation("an indirect command buffer was freed in flight");
  [commands_ release];
  [device_ release];
  [super dealloc];
}
- (id<MTLDevice>)device {
  return device_;
}
- (NSUInteger)allocatedSize {
  return 0;
}
- (NSUInteger)size {
  return [commands_ count];
}
- (id<MTLIndirectComputeCommand>)indirectComputeCommandAtIndex:(NSUInteger)commandIndex {
  return [commands_ objectAtIndex:commandIndex];
}
@end

// The fake device: buffers, the library, pipelines and what it says of itself.
#include <cstring>

#include "fake_metal_objects.h"

using namespace metal_shim;

namespace {

constexpr uint64_t kWorkingSetBytes = uint64_t{16} << 30;
constexpr uint64_t kMaxBufferBytes = uint64_t{8} << 30;

NSError* error_of(const std::string& text) {
  NSDictionary* info =
      [NSDictionary dictionaryWithObject:[NSString stringWithUTF8String:text.c_str()]
                                  forKey:NSLocalizedDescriptionKey];
  return [NSError errorWithDomain:@"MTLLibraryErrorDomain" code:3 userInfo:info];
}

bool is_in(const std::string& source, const Kernel& kernel) {
  return source.find("kernel void " + kernel.name + "(") != std::string::npos;
}

}  // namespace

id<MTLDevice> MTLCreateSystemDefaultDevice(void) { return [[FakeDevice alloc] init]; }

@implementation NSProcessInfo (OperatingSystemVersion)
- (NSOperatingSystemVersion)operatingSystemVersion {
  return {14, 0, 0};  // the oldest that the modules are made for
}
@end

@implementation MTLCompileOptions
@synthesize fastMathEnabled = _fastMathEnabled;
@synthesize languageVersion = _languageVersion;
- (id)init {
  self = [super init];
  _fastMathEnabled = YES;
  return self;
}
@end

@implementation MTLComputePipelineDescriptor
@synthesize computeFunction = _computeFunction;
@synthesize supportIndirectCommandBuffers = _supportIndirectCommandBuffers;
- (void)dealloc {
  [_computeFunction release];
  [super dealloc];
}
@end

@implementation MTLIndirectCommandBufferDescriptor
@synthesize commandTypes = _commandTypes;
@synthesize inheritPipelineState = _inheritPipelineState;
@synthesize inheritBuffers = _inheritBuffers;
@synthesize maxKernelBufferBindCount = _maxKernelBufferBindCount;
@synthesize maxKernelThreadgroupMemoryBindCount = _maxKernelThreadgroupMemoryBindCount;
- (id)init {
  self = [super init];
  _inheritPipelineState = YES;
  _inheritBuffers = YES;
  return self;
}
@end

@implementation FakeBuffer
- (id)initWithDevice:(FakeDevice*)device block:(uint64_t)block bytes:(uint64_t)bytes {
  self = [super init];
  device_ = [device retain];
  block_ = block;
  bytes_ = bytes;
  return self;
}
- (void)dealloc {
  {
    DeviceState& device = *device_->state_;
    std::lock_guard<std::mutex> lock(device.mutex);
    if (device.in_flight.count(block_) != 0) {
      violation("a buffer was freed while a command buffer that uses it was in flight");
    }
    const std::string wrong = device.memory.free(block_);
    if (!wrong.empty()) violation(wrong);
  }
  [device_ release];
  [super dealloc];
}
- (id<MTLDevice>)device {
  return device_;
}
- (NSUInteger)allocatedSize {
  return bytes_;
}
- (NSUInteger)length {
  return bytes_;
}
- (void*)contents {
  return device_->state_->memory.host(block_);
}
- (uint64_t)gpuAddress {
  return device_->state_->memory.gpu_address(block_);
}
@end

@implementation FakeFunction
- (NSString*)name {
  return [NSString stringWithUTF8String:kernel_->name.c_str()];
}
@end

@implementation FakeLibrary
- (id)initWithSource:(NSString*)source {
  self = [super init];
  source_ = new std::string([source UTF8String]);
  for (const Kernel& kernel : kernels()) {
    if (!is_in(*source_, kernel)) violation("kernel " + kernel.name + " is not in the library");
  }
  return self;
}
- (void)dealloc {
  delete source_;
  [super dealloc];
}
- (NSArray*)functionNames {
  NSMutableArray* names = [NSMutableArray array];
  for (const Kernel& kernel : kernels()) {
    [names addObject:[NSString stringWithUTF8String:kernel.name.c_str()]];
  }
  return names;
}
- (id<MTLFunction>)newFunctionWithName:(NSString*)functionName {
  const Kernel* const kernel = find_kernel([functionName UTF8String]);
  if (kernel == nullptr || !is_in(*source_, *kernel)) return nil;
  FakeFunction* function = [[FakeFunction alloc] init];
  function->kernel_ = kernel;
  return function;
}
@end

@implementation FakePipeline
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return kMaxThreads;
}
- (NSUInteger)threadExecutionWidth {
  return device_shim::kSimdWidth;
}
- (BOOL)supportIndirectCommandBuffers {
  return supports_indirect_;
}
@end

@implementation FakeDevice
- (id)init {
  self = [super init];
  state_ = new DeviceState;
  return self;
}
- (void)dealloc {
  delete state_;
  [super dealloc];
}
- (NSString*)name {
  return @"fake Metal device";
}
- (BOOL)supportsFamily:(MTLGPUFamily)gpuFamily {
  return gpuFamily == MTLGPUFamilyMetal3 || gpuFamily == MTLGPUFamilyApple7;
}
- (uint64_t)recommendedMaxWorkingSetSize {
  return kWorkingSetBytes;
}
- (NSUInteger)currentAllocatedSize {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->memory.live_bytes();
}
- (NSUInteger)maxBufferLength {
  return kMaxBufferBytes;
}
- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)count {
  return [[FakeQueue alloc] initWithDevice:self maxCount:count];
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  if (options != MTLResourceStorageModeShared) violation("a buffer that is not of shared storage");
  if (length == 0 || length > kMaxBufferBytes) return nil;
  std::lock_guard<std::mutex> lock(state_->mutex);
  const uint64_t block = state_->memory.allocate(length);
  return block == 0 ? nil : [[FakeBuffer alloc] initWithDevice:self block:block bytes:length];
}
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source
                               options:(MTLCompileOptions*)options
                                 error:(NSError**)error {
  if (options == nil || options.fastMathEnabled) {
    violation("a library was compiled with fast mathematics, which has not the bits of the CPU's");
  }
  if (std::strstr([source UTF8String], "kernel void ") == nullptr) {
    *error = error_of("a library without kernels");
    return nil;
  }
  return [[FakeLibrary alloc] initWithSource:source];
}
- (id<MTLComputePipelineState>)newComputePipelineStateWithDescriptor:
                                   (MTLComputePipelineDescriptor*)descriptor
                                                             options:(MTLPipelineOption)options
                                                          reflection:(void*)reflection
                                                               error:(NSError**)error {
  if (options != MTLPipelineOptionNone || reflection != nullptr)
    violation("reflection is not here");
  if (descriptor.computeFunction == nil) {
    *error = error_of("a pipeline without a function");
    return nil;
  }
  FakePipeline* pipeline = [[FakePipeline alloc] init];
  pipeline->kernel_ = ((FakeFunction*)descriptor.computeFunction)->kernel_;
  pipeline->supports_indirect_ = descriptor.supportIndirectCommandBuffers;
  return pipeline;
}
- (id<MTLIndirectCommandBuffer>)newIndirectCommandBufferWithDescriptor:
                                    (MTLIndirectCommandBufferDescriptor*)descriptor
                                                       maxCommandCount:(NSUInteger)maxCount
                                                               options:(MTLResourceOptions)options {
  if (options != MTLResourceStorageModeShared) violation("an indirect command buffer of the GPU's");
  return [[FakeIndirectCommandBuffer alloc] initWithDevice:self
                                                descriptor:descriptor
                                                     count:maxCount];
}
@end

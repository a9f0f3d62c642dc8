#include "fake_metal_mistakes.h"

#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <thread>

#include "fake_metal_objects.h"
#include "metal_args.h"
#include "objc_ref.h"

namespace metal_shim {

namespace {

using BufferRef = millrace::objc_ref<id<MTLBuffer>>;
using millrace::objc_ref;

constexpr NSUInteger kMaxCount = 3;
constexpr NSUInteger kBytes = 64;

// A device with what every mistake needs: a queue, the pipeline of a kernel that copies kBytes, and
// its arguments.
struct Rig {
  Rig() {
    MTLCompileOptions* options = [[[MTLCompileOptions alloc] init] autorelease];
    options.fastMathEnabled = NO;
    NSMutableString* source = [NSMutableString string];
    for (const Kernel& kernel : kernels())
      [source appendFormat:@"kernel void %s(", kernel.name.c_str()];
    NSError* error = nil;
    const auto library =
        objc_ref<id<MTLLibrary>>::adopt([device.get() newLibraryWithSource:source
                                                                   options:options
                                                                     error:&error]);
    MTLComputePipelineDescriptor* descriptor =
        [[[MTLComputePipelineDescriptor alloc] init] autorelease];
    const auto function =
        objc_ref<id<MTLFunction>>::adopt([library.get() newFunctionWithName:@"copy_rows_by_1"]);
    descriptor.computeFunction = function.get();
    descriptor.supportIndirectCommandBuffers = YES;
    pipeline = objc_ref<id<MTLComputePipelineState>>::adopt([device.get()
        newComputePipelineStateWithDescriptor:descriptor
                                      options:MTLPipelineOptionNone
                                   reflection:nil
                                        error:&error]);
    const millrace::CopyRowsArgs copy = {reinterpret_cast<void*>([to.get() gpuAddress]),
                                         reinterpret_cast<void*>([from.get() gpuAddress]),
                                         kBytes,
                                         kBytes,
                                         kBytes,
                                         1};
    std::memcpy([arguments.get() contents], &copy, sizeof(copy));
  }
  // The host's hand is off the device until everything that was committed is complete.
  ~Rig() {
    FakeMetalWorld::one().resume();
    queue = {};
  }

  BufferRef buffer() {
    return BufferRef::adopt([device.get() newBufferWithLength:kBytes
                                                      options:MTLResourceStorageModeShared]);
  }
  id<MTLCommandBuffer> commands() { return [queue.get() commandBufferWithUnretainedReferences]; }
  // A pass that copies; `index` is where its arguments are bound.
  void encode(id<MTLCommandBuffer> commands, bool declares = true, NSUInteger index = 0) {
    id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
    if (declares) declare(encoder);
    [encoder setComputePipelineState:pipeline.get()];
    [encoder setBuffer:arguments.get() offset:0 atIndex:index];
    [encoder dispatchThreadgroups:MTLSizeMake(1, 1, 1)
            threadsPerThreadgroup:MTLSizeMake(millrace::kCopyThreads, 1, 1)];
    [encoder endEncoding];
  }
  void declare(id<MTLComputeCommandEncoder> encoder) {
    const id<MTLResource> resources[] = {from.get(), to.get(), arguments.get()};
    [encoder useResources:resources count:3 usage:MTLResourceUsageRead | MTLResourceUsageWrite];
  }
  void commit(id<MTLCommandBuffer> commands) {
    [commands addCompletedHandler:^(id<MTLCommandBuffer>){
    }];
    [commands commit];
  }
  objc_ref<id<MTLIndirectCommandBuffer>> indirect() {
    MTLIndirectCommandBufferDescriptor* descriptor =
        [[[MTLIndirectCommandBufferDescriptor alloc] init] autorelease];
    descriptor.commandTypes = MTLIndirectCommandTypeConcurrentDispatch;
    descriptor.inheritBuffers = NO;
    descriptor.inheritPipelineState = NO;
    descriptor.maxKernelBufferBindCount = 1;
    auto made = objc_ref<id<MTLIndirectCommandBuffer>>::adopt([device.get()
        newIndirectCommandBufferWithDescriptor:descriptor
                               maxCommandCount:1
                                       options:MTLResourceStorageModeShared]);
    id<MTLIndirectComputeCommand> command = [made.get() indirectComputeCommandAtIndex:0];
    [command setComputePipelineState:pipeline.get()];
    [command setKernelBuffer:arguments.get() offset:0 atIndex:0];
    [command concurrentDispatchThreadgroups:MTLSizeMake(1, 1, 1)
                      threadsPerThreadgroup:MTLSizeMake(millrace::kCopyThreads, 1, 1)];
    return made;
  }

  objc_ref<id<MTLDevice>> device = objc_ref<id<MTLDevice>>::adopt(MTLCreateSystemDefaultDevice());
  BufferRef from = buffer(), to = buffer(), arguments = buffer();
  objc_ref<id<MTLComputePipelineState>> pipeline;
  objc_ref<id<MTLCommandQueue>> queue = objc_ref<id<MTLCommandQueue>>::adopt(
      [device.get() newCommandQueueWithMaxCommandBufferCount:kMaxCount]);
};

void do_everything_right(Rig& rig) {
  id<MTLCommandBuffer> commands = rig.commands();
  rig.encode(commands);
  rig.commit(commands);
}

void submit_from_another_thread(Rig& rig) {
  do_everything_right(rig);
  std::thread([&rig] {
    @autoreleasepool {
      id<MTLCommandBuffer> commands = rig.commands();
      rig.commit(commands);
    }
  }).join();
}

void edit_in_flight(Rig& rig) {
  FakeMetalWorld::one().hold();
  const auto indirect = rig.indirect();
  id<MTLCommandBuffer> commands = rig.commands();
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
  rig.declare(encoder);
  [encoder executeCommandsInBuffer:indirect.get() withRange:NSMakeRange(0, 1)];
  [encoder endEncoding];
  rig.commit(commands);
  [[indirect.get() indirectComputeCommandAtIndex:0] setKernelBuffer:rig.arguments.get()
                                                             offset:0
                                                            atIndex:0];
  FakeMetalWorld::one().resume();
  rig.queue = {};  // waits
}

void commit_twice(Rig& rig) {
  id<MTLCommandBuffer> commands = rig.commands();
  rig.encode(commands);
  rig.commit(commands);
  [commands commit];
}

void open_two_encoders(Rig& rig) {
  id<MTLCommandBuffer> commands = rig.commands();
  id<MTLComputeCommandEncoder> first = [commands computeCommandEncoder];
  id<MTLComputeCommandEncoder> second = [commands computeCommandEncoder];
  [second endEncoding];
  [first endEncoding];
  rig.commit(commands);
}

// Nothing runs: a GPU would fault, and so would this one.
void forget_residency(Rig& rig) { rig.encode(rig.commands(), false); }

void add_handler_after_commit(Rig& rig) {
  id<MTLCommandBuffer> commands = rig.commands();
  rig.encode(commands);
  rig.commit(commands);
  [commands addCompletedHandler:^(id<MTLCommandBuffer>){
  }];
}

void free_buffer_in_flight(Rig& rig) {
  FakeMetalWorld::one().hold();
  BufferRef unused = rig.buffer();
  id<MTLCommandBuffer> commands = rig.commands();
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
  const id<MTLResource> resources[] = {unused.get()};
  [encoder useResources:resources count:1 usage:MTLResourceUsageRead | MTLResourceUsageWrite];
  [encoder endEncoding];
  rig.commit(commands);
  unused = {};
}

void commit_without_bound(Rig& rig) {
  FakeMetalWorld::one().hold();
  for (NSUInteger i = 0; i < kMaxCount + 1; ++i) do_everything_right(rig);
}

void bind_wrong_index(Rig& rig) {
  id<MTLCommandBuffer> commands = rig.commands();
  rig.encode(commands, true, 1);
  rig.commit(commands);
}

void lose_error(Rig& rig) {
  FakeMetalWorld::one().fail_command_buffer(0, MTLCommandBufferErrorPageFault);
  do_everything_right(rig);
}

const std::map<std::string, std::function<void(Rig&)>>& mistakes() {
  static const std::map<std::string, std::function<void(Rig&)>> all = {
      {"none", do_everything_right},
      {"submit from another thread", submit_from_another_thread},
      {"edit in flight", edit_in_flight},
      {"commit twice", commit_twice},
      {"two open encoders", open_two_encoders},
      {"missing residency", forget_residency},
      {"handler after commit", add_handler_after_commit},
      {"buffer freed in flight", free_buffer_in_flight},
      {"unbounded queue", commit_without_bound},
      {"wrong binding index", bind_wrong_index},
      {"lost error", lose_error},
  };
  return all;
}

}  // namespace

std::vector<std::string> names_of_mistakes() {
  std::vector<std::string> names;
  for (const auto& each : mistakes()) names.push_back(each.first);
  return names;
}

void make_mistake(const std::string& name) {
  const auto found = mistakes().find(name);
  if (found == mistakes().end()) throw std::invalid_argument("no mistake " + name);
  @autoreleasepool {
    Rig rig;
    // Command buffers end before their queue does.
    @autoreleasepool {
      found->second(rig);
    }
  }
}

}  // namespace metal_shim

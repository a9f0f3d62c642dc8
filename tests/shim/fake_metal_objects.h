// The classes of the fake Metal device. They keep what they were told, check it against Apple's
// rules and ours, and hand what runs to fake_metal_queue.mm. C++ state hangs on pointers: Debian's
// Objective-C runtime constructs no members.
#pragma once

#import <Metal/Metal.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fake_metal_memory.h"
#include "fake_metal_world.h"
#include "metal_kernels.h"

@class FakeBuffer, FakeCommandBuffer, FakeDevice, FakeIndirectCommandBuffer, FakePipeline;
@class FakeQueue;

namespace metal_shim {

constexpr NSUInteger kMaxBufferIndex = 30;  // 31 bindings
constexpr NSUInteger kMaxThreads = 1024, kMaxThreadgroupBytes = 32 << 10;
constexpr const char* kUnbound = "a kernel's arguments, buffer index 0, are not bound";

inline void violation(const std::string& text) { FakeMetalWorld::one().violation(text); }

// Of a device; outlives it while buffers live.
struct DeviceState {
  std::mutex mutex;  // guards all that follows
  FakeMetalMemory memory;
  std::map<uint64_t, int> in_flight;  // block: committed command buffers that use it
};

// One dispatch as it was told, of an encoder or of an indirect command.
struct Command {
  FakePipeline* pipeline = nil;
  uint64_t block = 0, offset = 0;  // of the arguments
  bool has_arguments = false;
  NSUInteger threadgroup_bytes = 0;
  MTLSize grid = {}, threads = {};
  bool has_barrier = false, is_dispatched = false;
};

// What an encoder recorded: its own dispatches, or a range of an indirect command buffer.
struct Step {
  Command command;
  FakeIndirectCommandBuffer* indirect = nil;
  NSRange range = {};
};

struct Pass {
  std::vector<Step> steps;
  std::set<uint64_t> declared;  // blocks: declared or bound
};

// Says what is wrong with a dispatch.
void check_dispatch(DeviceState& device, const Command& command, const std::set<uint64_t>& declared,
                    const char* where);

}  // namespace metal_shim

@interface FakeBuffer : NSObject <MTLBuffer> {
 @public
  FakeDevice* device_;
  uint64_t block_, bytes_;
}
- (id)initWithDevice:(FakeDevice*)device block:(uint64_t)block bytes:(uint64_t)bytes;
@end

@interface FakeFunction : NSObject <MTLFunction> {
 @public
  const metal_shim::Kernel* kernel_;
}
@end

@interface FakeLibrary : NSObject <MTLLibrary> {
  NSString* source_;
}
- (id)initWithSource:(NSString*)source;
@end

@interface FakePipeline : NSObject <MTLComputePipelineState> {
 @public
  const metal_shim::Kernel* kernel_;
  BOOL supports_indirect_;
}
@end

@interface FakeDevice : NSObject <MTLDevice> {
 @public
  metal_shim::DeviceState* state_;
}
@end

@interface FakeIndirectCommand : NSObject <MTLIndirectComputeCommand> {
 @public
  FakeIndirectCommandBuffer* buffer_;  // holds this
  metal_shim::Command command_;
}
@end

@interface FakeIndirectCommandBuffer : NSObject <MTLIndirectCommandBuffer> {
 @public
  FakeDevice* device_;
  NSMutableArray* commands_;
  NSUInteger bindings_, threadgroup_bindings_;
  int in_flight_;  // guarded by the device's mutex
}
- (id)initWithDevice:(FakeDevice*)device
          descriptor:(MTLIndirectCommandBufferDescriptor*)descriptor
               count:(NSUInteger)count;
@end

@interface FakeEncoder : NSObject <MTLComputeCommandEncoder> {
 @public
  FakeCommandBuffer* commands_;  // not held: a command buffer outlives its encoders
  metal_shim::Pass* pass_;
  metal_shim::Command next_;
  BOOL is_ended_;
}
- (id)initWithCommands:(FakeCommandBuffer*)commands;
@end

@interface FakeCommandBuffer : NSObject <MTLCommandBuffer> {
 @public
  FakeQueue* queue_;
  std::deque<metal_shim::Pass>* passes_;  // encoders point into it
  std::vector<void*>* handlers_;
  MTLCommandBufferStatus status_;
  NSError* error_;
  double start_, end_;
  uint64_t number_;
  BOOL is_error_seen_, is_finished_;
}
- (id)initWithQueue:(FakeQueue*)queue;
- (void)runAndComplete;
@end

namespace metal_shim {

struct QueueState {
  std::mutex mutex;  // guards all that follows
  std::condition_variable moved;
  std::deque<FakeCommandBuffer*> committed;  // held
  std::thread::id owner;
  NSUInteger max_count, unfinished = 0;
  int open_encoders = 0;
  bool is_closing = false;
  std::thread gpu;
};

// Whoever creates, encodes or commits: one thread for each queue.
void assert_submit_thread(QueueState& queue, const char* what);

}  // namespace metal_shim

@interface FakeQueue : NSObject <MTLCommandQueue> {
 @public
  FakeDevice* device_;
  metal_shim::QueueState* state_;
}
- (id)initWithDevice:(FakeDevice*)device maxCount:(NSUInteger)count;
@end

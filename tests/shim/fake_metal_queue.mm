// Queues, command buffers and encoders of the fake device, and what runs on its thread.
#include <Block.h>

#include <chrono>
#include <cstring>
#include <exception>

#include "fake_metal_objects.h"

using namespace metal_shim;

NSString* const MTLCommandBufferErrorDomain = @"MTLCommandBufferErrorDomain";

namespace metal_shim {

namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uint64_t count_of(const MTLSize& size) { return size.width * size.height * size.depth; }

// Every number in the arguments that is an address of this device leads to a buffer that lives and
// was declared.
void check_residency(DeviceState& device, const Command& command,
                     const std::set<uint64_t>& declared, const char* where) {
  std::lock_guard<std::mutex> lock(device.mutex);
  const std::string kernel = std::string(where) + ": " + command.pipeline->kernel_->name;
  if (declared.count(command.block) == 0) violation(kernel + ": its arguments are not resident");
  if (!device.memory.is_live(command.block)) return violation(kernel + ": its arguments are freed");
  const char* const arguments = device.memory.host(command.block) + command.offset;
  for (size_t at = 0; at + 8 <= command.pipeline->kernel_->argument_bytes; at += 8) {
    uint64_t address = 0;
    std::memcpy(&address, arguments + at, sizeof(address));
    if (device.memory.is_host_address(address)) {
      violation(kernel + ": an address in its arguments is the host's");
    }
    if (!device.memory.is_gpu_address(address)) continue;
    const uint64_t block = device.memory.block_of(address);
    if (block == 0) {
      violation(kernel + ": an address in its arguments leads to no buffer");
    } else if (declared.count(block) == 0) {
      violation(kernel + ": a buffer in its arguments is not resident");
    }
  }
}

void run(DeviceState& device, const Command& command) {
  // The GPU reads its own view of the arguments.
  const auto* arguments =
      reinterpret_cast<const void*>(device.memory.gpu_address(command.block) + command.offset);
  run_kernel(
      *command.pipeline->kernel_, arguments,
      {{static_cast<uint32_t>(command.grid.width), static_cast<uint32_t>(command.grid.height),
        static_cast<uint32_t>(command.grid.depth)},
       static_cast<uint32_t>(command.threads.width),
       static_cast<uint32_t>(command.threadgroup_bytes)});
}

void run(DeviceState& device, const Step& step) {
  if (step.indirect == nil) return run(device, step.command);
  for (NSUInteger i = 0; i < step.range.length; ++i) {
    FakeIndirectCommand* command = [step.indirect->commands_ objectAtIndex:step.range.location + i];
    run(device, command->command_);
  }
}

void run(DeviceState& device, const Pass& pass) {
  {
    std::lock_guard<std::mutex> lock(device.mutex);
    device.memory.open(pass.declared);
  }
  for (const Step& step : pass.steps) run(device, step);
  std::lock_guard<std::mutex> lock(device.mutex);
  device.memory.close_all();
}

// The kernels of the passes, in order, those of an indirect command buffer as "replay".
std::string text_of(const std::deque<Pass>& passes) {
  std::string text;
  for (const Pass& pass : passes) {
    for (const Step& step : pass.steps) {
      text += (text.empty() ? "" : ", ") +
              (step.indirect != nil ? std::string("replay") : step.command.pipeline->kernel_->name);
    }
  }
  return text;
}

NSError* error_of(int code, const std::string& text) {
  NSDictionary* info =
      [NSDictionary dictionaryWithObject:[NSString stringWithUTF8String:text.c_str()]
                                  forKey:NSLocalizedDescriptionKey];
  return [NSError errorWithDomain:MTLCommandBufferErrorDomain code:code userInfo:info];
}

}  // namespace

void assert_submit_thread(QueueState& queue, const char* what) {
  std::lock_guard<std::mutex> lock(queue.mutex);
  const std::thread::id self = std::this_thread::get_id();
  if (queue.owner == std::thread::id()) queue.owner = self;
  if (queue.owner != self) violation(std::string(what) + " from a second thread");
}

void check_dispatch(DeviceState& device, const Command& command, const std::set<uint64_t>& declared,
                    const char* where) {
  if (command.pipeline == nil) return violation(std::string(where) + ": no pipeline is set");
  const Kernel& kernel = *command.pipeline->kernel_;
  const std::string name = std::string(where) + ": " + kernel.name;
  if (count_of(command.grid) == 0 || count_of(command.threads) == 0) {
    violation(name + ": an empty grid");
  }
  if (command.threads.height != 1 || command.threads.depth != 1) {
    violation(name + ": threadgroups of more than one dimension");
  }
  if (count_of(command.threads) > kMaxThreads) violation(name + ": more than 1,024 threads");
  if (command.threadgroup_bytes > kMaxThreadgroupBytes || command.threadgroup_bytes % 16 != 0) {
    violation(name + ": threadgroup memory over 32 KiB or no multiple of 16");
  }
  if (!command.has_arguments) return violation(name + ": " + kUnbound);
  check_residency(device, command, declared, where);
}

}  // namespace metal_shim

@implementation FakeEncoder
- (id)initWithCommands:(FakeCommandBuffer*)commands {
  self = [super init];
  commands_ = commands;
  commands->passes_->emplace_back();
  pass_ = &commands->passes_->back();
  return self;
}
- (void)dealloc {
  if (!is_ended_) violation("an encoder was released before its encoding ended");
  [super dealloc];
}
- (DeviceState&)deviceState {
  return *commands_->queue_->device_->state_;
}
- (void)check:(const char*)what {
  assert_submit_thread(*commands_->queue_->state_, what);
  if (is_ended_) violation(std::string(what) + " after endEncoding");
}
- (void)endEncoding {
  [self check:"endEncoding"];
  is_ended_ = YES;
  QueueState& queue = *commands_->queue_->state_;
  std::lock_guard<std::mutex> lock(queue.mutex);
  --queue.open_encoders;
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
  [self check:"setComputePipelineState"];
  next_.pipeline = (FakePipeline*)state;
}
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  [self check:"setBuffer"];
  if (index > kMaxBufferIndex) violation("setBuffer: there are 31 bindings");
  if (index != 0) return;
  next_.block = ((FakeBuffer*)buffer)->block_;
  next_.offset = offset;
  next_.has_arguments = true;
  pass_->declared.insert(next_.block);
}
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
  [self check:"setThreadgroupMemoryLength"];
  if (index > kMaxBufferIndex) violation("setThreadgroupMemoryLength: there are 31 bindings");
  next_.threadgroup_bytes = length;
}
- (void)dispatchThreadgroups:(MTLSize)threadgroupsPerGrid
       threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup {
  [self check:"dispatchThreadgroups"];
  Step step{next_, nil, {}};
  step.command.grid = threadgroupsPerGrid;
  step.command.threads = threadsPerThreadgroup;
  if (step.command.pipeline != nil && !step.command.pipeline->kernel_->has_threadgroup_memory) {
    step.command.threadgroup_bytes = 0;  // of an earlier kernel: the setting stays, unused
  }
  check_dispatch([self deviceState], step.command, pass_->declared, "dispatch");
  const bool can_run = step.command.pipeline != nil && step.command.has_arguments;
  if (can_run) pass_->steps.push_back(step);
}
- (void)useResources:(const id<MTLResource>[])resources
               count:(NSUInteger)count
               usage:(MTLResourceUsage)usage {
  [self check:"useResources"];
  if (usage != (MTLResourceUsageRead | MTLResourceUsageWrite)) {
    violation("useResources: kernels read and write what they reach");
  }
  for (NSUInteger i = 0; i < count; ++i) {
    if ([(NSObject*)resources[i] isKindOfClass:[FakeBuffer class]]) {
      pass_->declared.insert(((FakeBuffer*)resources[i])->block_);
    }
  }
}
- (void)executeCommandsInBuffer:(id<MTLIndirectCommandBuffer>)indirectCommandBuffer
                      withRange:(NSRange)executionRange {
  [self check:"executeCommandsInBuffer"];
  FakeIndirectCommandBuffer* indirect = (FakeIndirectCommandBuffer*)indirectCommandBuffer;
  if (executionRange.location + executionRange.length > [indirect size]) {
    return violation("executeCommandsInBuffer: the range is not within the buffer");
  }
  for (NSUInteger i = 0; i < executionRange.length; ++i) {
    FakeIndirectCommand* command = [indirect->commands_ objectAtIndex:executionRange.location + i];
    if (!command->command_.is_dispatched) return violation("an indirect command was never encoded");
    if (i > 0 && !command->command_.has_barrier) {
      violation("an indirect command does not wait for the one before it");
    }
    check_dispatch([self deviceState], command -> command_, pass_ -> declared, "indirect command");
  }
  pass_->steps.push_back({{}, indirect, executionRange});
}
@end

@implementation FakeCommandBuffer
- (id)initWithQueue:(FakeQueue*)queue {
  self = [super init];
  queue_ = queue;
  passes_ = new std::deque<Pass>;
  handlers_ = new std::vector<void*>;
  return self;
}
- (void)dealloc {
  if (error_ != nil && !is_error_seen_) violation("an error of a command buffer was lost");
  if (!is_finished_) [self leaveQueue];
  for (void* handler : *handlers_) _Block_release(handler);
  delete handlers_;
  delete passes_;
  [error_ release];
  [super dealloc];
}
- (void)leaveQueue {
  is_finished_ = YES;
  std::lock_guard<std::mutex> lock(queue_->state_->mutex);
  --queue_->state_->unfinished;
}
- (BOOL)isCommitted {
  return status_ >= MTLCommandBufferStatusCommitted;
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
  assert_submit_thread(*queue_->state_, "computeCommandEncoder");
  if ([self isCommitted]) violation("computeCommandEncoder after commit");
  {
    std::lock_guard<std::mutex> lock(queue_->state_->mutex);
    if (++queue_->state_->open_encoders > 1) violation("two encoders are open");
  }
  return [[[FakeEncoder alloc] initWithCommands:self] autorelease];
}
- (void)addCompletedHandler:(MTLCommandBufferHandler)block {
  assert_submit_thread(*queue_->state_, "addCompletedHandler");
  if ([self isCommitted]) return violation("addCompletedHandler after commit");
  handlers_->push_back(_Block_copy((const void*)block));
}
- (void)declare:(int)change {
  DeviceState& device = *queue_->device_->state_;
  std::lock_guard<std::mutex> lock(device.mutex);
  for (const Pass& pass : *passes_) {
    for (const uint64_t block : pass.declared) {
      if (change > 0 && !device.memory.is_live(block)) {
        violation("commit: a buffer was freed after a pass had declared it");
      }
      if ((device.in_flight[block] += change) == 0) device.in_flight.erase(block);
    }
    for (const Step& step : pass.steps) {
      if (step.indirect != nil) step.indirect->in_flight_ += change;
    }
  }
}
- (void)commit {
  QueueState& queue = *queue_->state_;
  assert_submit_thread(queue, "commit");
  if ([self isCommitted]) return violation("a command buffer was committed twice");
  if (handlers_->empty()) violation("commit without a completion handler");
  status_ = MTLCommandBufferStatusCommitted;
  [self declare:1];
  std::lock_guard<std::mutex> lock(queue.mutex);
  if (queue.open_encoders > 0) violation("commit while an encoder is open");
  number_ = FakeMetalWorld::one().commit(text_of(*passes_));
  queue.committed.push_back([self retain]);
  queue.moved.notify_all();
}
- (void)runAndComplete {
  int code = FakeMetalWorld::one().begin(number_);
  std::string text = "this command buffer was told to fail";
  start_ = now_s();
  if (code == 0) {
    try {
      for (const Pass& pass : *passes_) run(*queue_->device_->state_, pass);
    } catch (const std::exception& error) {
      code = MTLCommandBufferErrorInternal;
      text = error.what();
      violation(text);
    }
  }
  end_ = now_s();
  if (code != 0) error_ = [error_of(code, text) retain];
  status_ = code == 0 ? MTLCommandBufferStatusCompleted : MTLCommandBufferStatusError;
  [self declare:-1];
  [self leaveQueue];
  FakeMetalWorld::one().complete(number_);
  for (void* handler : *handlers_) ((MTLCommandBufferHandler)handler)(self);
}
- (MTLCommandBufferStatus)status {
  is_error_seen_ = error_ != nil;
  return status_;
}
- (NSError*)error {
  is_error_seen_ = error_ != nil;
  return error_;
}
- (CFTimeInterval)GPUStartTime {
  return start_;
}
- (CFTimeInterval)GPUEndTime {
  return end_;
}
@end

@implementation FakeQueue
- (id)initWithDevice:(FakeDevice*)device maxCount:(NSUInteger)count {
  self = [super init];
  device_ = [device retain];
  state_ = new QueueState;
  state_->max_count = count;
  QueueState* const state = state_;
  state_->gpu = std::thread([state] {
    for (;;) {
      std::unique_lock<std::mutex> lock(state->mutex);
      state->moved.wait(lock, [state] { return state->is_closing || !state->committed.empty(); });
      if (state->committed.empty()) return;
      FakeCommandBuffer* next = state->committed.front();
      state->committed.pop_front();
      lock.unlock();
      @autoreleasepool {
        [next runAndComplete];
        [next release];
      }
    }
  });
  return self;
}
- (void)dealloc {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->is_closing = true;
    state_->moved.notify_all();
  }
  state_->gpu.join();
  if (state_->unfinished > 0) violation("a queue was released before its command buffers");
  delete state_;
  [device_ release];
  [super dealloc];
}
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences {
  assert_submit_thread(*state_, "commandBuffer");
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    if (++state_->unfinished > state_->max_count) {
      violation("more than " + std::to_string(state_->max_count) +
                " command buffers are not complete");
    }
  }
  return [[[FakeCommandBuffer alloc] initWithQueue:self] autorelease];
}
@end

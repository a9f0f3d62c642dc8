#include "metal_queue.h"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

#include "metal_graph.h"

namespace millrace {

namespace {

constexpr uint64_t kArenaBytes = uint64_t{1} << 20;
// What is taken of an arena is aligned for any member of arguments and for the widest copies.
constexpr uint64_t kAlignment = 32;
constexpr NSUInteger kArgumentsIndex = 0;

void copy_rows(char* to, uint64_t to_pitch_bytes, const char* from, uint64_t from_pitch_bytes,
               uint64_t row_bytes, uint64_t rows) {
  for (uint64_t row = 0; row < rows; ++row) {
    std::memcpy(to + row * to_pitch_bytes, from + row * from_pitch_bytes, row_bytes);
  }
}

}  // namespace

MetalQueue::MetalQueue(id<MTLDevice> device, MetalErrors& errors, const MetalMemory& memory,
                       const MetalPipelines& pipelines)
    : device_(device), errors_(errors), memory_(memory), pipelines_(pipelines) {}

MetalQueue::~MetalQueue() {
  std::unique_lock<std::mutex> lock(mutex_);
  moved_.wait(lock, [this] { return in_flight_.empty(); });
}

int MetalQueue::open() {
  // One more than can be in flight: the one that is being encoded.
  queue_ = objc_ref<id<MTLCommandQueue>>::adopt(
      [device_ newCommandQueueWithMaxCommandBufferCount:kMaxInFlight + 1]);
  if (!queue_) return errors_.keep("newCommandQueue", MR_SITE, kMetalRefused, "no command queue");
  for (size_t i = 0; i < kMaxInFlight + 1; ++i) {
    auto submission = std::make_unique<Submission>();
    submission->arena =
        BufferRef::adopt([device_ newBufferWithLength:kArenaBytes
                                              options:MTLResourceStorageModeShared]);
    if (!submission->arena) {
      return errors_.keep("newBuffer", MR_SITE, kMetalOutOfMemory, "no memory for staging");
    }
    idle_.push_back(submission.get());
    submissions_.push_back(std::move(submission));
  }
  return 0;
}

int MetalQueue::assert_owner(const char* operation) {
  const std::thread::id self = std::this_thread::get_id();
  std::thread::id owner{};
  if (!owner_.compare_exchange_strong(owner, self) && owner != self) {
    std::ostringstream meaning;
    meaning << "thread " << self << " submitted to a Metal device whose submit thread is " << owner;
    return errors_.keep(operation, MR_SITE, kMetalWrongThread, meaning.str());
  }
  return errors_.check();
}

// Work whose owner asks for no event must begin, too.
int MetalQueue::commit_if_full() {
  if (open_ == nullptr || open_->arena_used <= kArenaBytes / 2) return 0;
  uint64_t number = 0;
  return commit(nullptr, &number);
}

int MetalQueue::open_submission() {
  if (const int code = commit_if_full()) return code;
  std::unique_lock<std::mutex> lock(mutex_);
  if (open_ != nullptr) return 0;
  moved_.wait(lock, [this] { return in_flight_.size() < kMaxInFlight || errors_.is_poisoned(); });
  if (const int code = errors_.check()) return code;
  Submission* next = idle_.back();
  next->commands =
      objc_ref<id<MTLCommandBuffer>>::retain([queue_.get() commandBufferWithUnretainedReferences]);
  if (!next->commands) {
    return errors_.keep("commandBuffer", MR_SITE, kMetalRefused, "no command buffer");
  }
  idle_.pop_back();
  next->arena_used = 0;
  next->is_done = false;
  next->start_times = std::exchange(marks_, {});
  open_ = next;
  return 0;
}

int MetalQueue::commit(std::shared_ptr<GpuTimes> times, uint64_t* number) {
  std::unique_lock<std::mutex> lock(mutex_);
  Submission* const submission = open_;
  if (times) {
    marks_.push_back(times);
    if (submission != nullptr) {
      submission->end_times.push_back(std::move(times));
    } else if (!in_flight_.empty() && !in_flight_.back()->is_done) {
      in_flight_.back()->end_times.push_back(std::move(times));
    } else {
      times->end = last_end_;
    }
  }
  *number = committed_;
  if (submission == nullptr) return 0;
  open_ = nullptr;
  submission->number = ++committed_;
  *number = committed_;
  in_flight_.push_back(submission);
  lock.unlock();
  id<MTLCommandBuffer> commands = submission->commands.get();
  [commands addCompletedHandler:^(id<MTLCommandBuffer>) {
    @autoreleasepool {
      finish(*submission);
    }
  }];
  [commands commit];
  return 0;
}

int MetalQueue::keep_failure(id<MTLCommandBuffer> commands) {
  NSError* const error = [commands error];
  const int code = error == nil ? kMetalRefused : static_cast<int>([error code]);
  const char* const text =
      error == nil ? "no reason was given" : [[error localizedDescription] UTF8String];
  return errors_.poison("command buffer", MR_SITE, code == 0 ? kMetalRefused : code, text);
}

void MetalQueue::deliver(const Submission& submission) const {
  for (const Delivery& one : submission.deliveries) {
    copy_rows(one.to, one.to_pitch_bytes, one.from, one.row_bytes, one.row_bytes, one.rows);
  }
}

void MetalQueue::finish(Submission& submission) {
  id<MTLCommandBuffer> commands = submission.commands.get();
  if ([commands status] != MTLCommandBufferStatusCompleted) keep_failure(commands);
  if (!errors_.is_poisoned()) deliver(submission);
  const double start = [commands GPUStartTime], end = [commands GPUEndTime];
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& times : submission.start_times) times->next_start = start;
  for (const auto& times : submission.end_times) times->end = end;
  last_end_ = std::max(last_end_, end);
  submission.start_times.clear();
  submission.end_times.clear();
  submission.deliveries.clear();
  submission.kept.clear();  // before anyone hears of it: whoever counts memory then finds it free
  submission.is_done = true;
  while (!in_flight_.empty() && in_flight_.front()->is_done) {
    completed_ = in_flight_.front()->number;
    idle_.push_back(in_flight_.front());
    in_flight_.pop_front();
  }
  moved_.notify_all();
}

bool MetalQueue::is_complete(uint64_t number) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return completed_ >= number;
}

int MetalQueue::wait(uint64_t number) {
  std::unique_lock<std::mutex> lock(mutex_);
  moved_.wait(lock, [&] { return completed_ >= number || errors_.is_poisoned(); });
  return errors_.check();
}

GpuTimes MetalQueue::read(const GpuTimes& times) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return times;
}

void MetalQueue::retire(objc_ref<id<MTLResource>> resource) {
  std::lock_guard<std::mutex> lock(mutex_);
  Submission* const last = open_ != nullptr      ? open_
                           : !in_flight_.empty() ? in_flight_.back()
                                                 : nullptr;
  if (last != nullptr && !last->is_done) last->kept.push_back(std::move(resource));
}

// ---- a pass ----

ComputeScope::ComputeScope(MetalQueue& queue, const char* operation)
    : queue_(queue), operation_(operation), code_(queue.open_submission()) {
  if (code_ != 0) return;
  submission_ = queue.open_;
  encoder_ = [[submission_->commands.get() computeCommandEncoder] retain];
  if (encoder_ == nil) {
    code_ = queue.errors_.keep(operation, MR_SITE, kMetalRefused, "no compute encoder");
    return;
  }
  const std::vector<BufferRef> memory = queue.memory_.all();
  std::vector<id<MTLResource>> resources;
  resources.reserve(memory.size() + 1);
  for (const BufferRef& buffer : memory) resources.push_back(buffer.get());
  resources.push_back(submission_->arena.get());
  [encoder_ useResources:resources.data()
                   count:resources.size()
                   usage:MTLResourceUsageRead | MTLResourceUsageWrite];
}

ComputeScope::~ComputeScope() {
  [encoder_ endEncoding];
  [encoder_ release];
}

void ComputeScope::declare(id<MTLBuffer> buffer) {
  const id<MTLResource> resources[] = {buffer};
  [encoder_ useResources:resources count:1 usage:MTLResourceUsageRead | MTLResourceUsageWrite];
}

// From the arena of the command buffer, or a buffer for this alone.
int ComputeScope::take(uint64_t bytes, Place* place) {
  const uint64_t needed = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (submission_->arena_used + needed <= kArenaBytes) {
    *place = {submission_->arena.get(), submission_->arena_used};
    submission_->arena_used += needed;
    return 0;
  }
  BufferRef buffer =
      BufferRef::adopt([queue_.device_ newBufferWithLength:needed
                                                   options:MTLResourceStorageModeShared]);
  if (!buffer) {
    return queue_.errors_.keep(operation_, MR_SITE, kMetalOutOfMemory,
                               "no " + std::to_string(needed) + " bytes for staging");
  }
  *place = {buffer.get(), 0};
  declare(buffer.get());
  queue_.retire(objc_ref<id<MTLResource>>::retain(buffer.get()));
  return 0;
}

int ComputeScope::stage(uint64_t bytes, Staging* staging) {
  Place place{};
  if (const int code = take(bytes, &place)) return code;
  staging->bytes = static_cast<char*>([place.buffer contents]) + place.offset;
  staging->gpu_address = reinterpret_cast<void*>([place.buffer gpuAddress] + place.offset);
  return 0;
}

void ComputeScope::deliver(const Staging& from, void* to, uint64_t to_pitch_bytes,
                           uint64_t row_bytes, uint64_t rows) {
  submission_->deliveries.push_back(
      {from.bytes, static_cast<char*>(to), to_pitch_bytes, row_bytes, rows});
}

int ComputeScope::encode(const MetalDispatches& dispatches) {
  for (const MetalDispatch& dispatch : dispatches.all()) {
    const int code = dispatch.kernel == nullptr ? encode_copy(dispatch) : encode_kernel(dispatch);
    if (code != 0) return code;
  }
  return 0;
}

int ComputeScope::encode_copy(const MetalDispatch& copy) {
  Staging staging{};
  if (const int code = stage(copy.copy_bytes, &staging)) return code;
  std::memcpy(staging.bytes, copy.copy_from_host, copy.copy_bytes);
  MetalDispatches from_staging;
  add_copy_rows(from_staging, copy.copy_to, copy.copy_bytes, staging.gpu_address, copy.copy_bytes,
                copy.copy_bytes, 1);
  return encode(from_staging);
}

int ComputeScope::encode_kernel(const MetalDispatch& dispatch) {
  id<MTLComputePipelineState> pipeline = queue_.pipelines_.of(dispatch, operation_, queue_.errors_);
  if (pipeline == nil) return kMetalProgram;
  Place place{};
  if (const int code = take(dispatch.arguments.size(), &place)) return code;
  std::memcpy(static_cast<char*>([place.buffer contents]) + place.offset, dispatch.arguments.data(),
              dispatch.arguments.size());
  [encoder_ setComputePipelineState:pipeline];
  [encoder_ setBuffer:place.buffer offset:place.offset atIndex:kArgumentsIndex];
  if (dispatch.threadgroup_bytes > 0) {
    [encoder_ setThreadgroupMemoryLength:dispatch.threadgroup_bytes atIndex:0];
  }
  [encoder_ dispatchThreadgroups:MTLSizeMake(dispatch.threadgroups[0], dispatch.threadgroups[1],
                                             dispatch.threadgroups[2])
           threadsPerThreadgroup:MTLSizeMake(dispatch.threads, 1, 1)];
  return 0;
}

void ComputeScope::replay(const MetalGraph& graph) {
  if (graph.size() == 0) return;
  declare(graph.arguments());
  [encoder_ executeCommandsInBuffer:graph.commands() withRange:NSMakeRange(0, graph.size())];
}

}  // namespace millrace

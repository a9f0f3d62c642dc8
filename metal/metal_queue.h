// The one queue of a Metal device. Work is encoded into the open command buffer, a ComputeScope at
// a time, and begins when that is committed; what was committed is numbered and completes in order.
//
// Threads: the first that submits is the owner; whatever encodes or commits asserts it. At most
// kMaxInFlight command buffers are committed and not complete; the owner waits for the oldest one
// where it would be more. Any thread may ask, wait and retire. Completion handlers run on threads
// of Metal's: they deliver copies, keep the first error and wake who waits, and submit nothing.
//
// Command buffers hold no references: the queue keeps what they use until they are complete.
#pragma once

#import <Metal/Metal.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "metal_dispatch.h"
#include "metal_errors.h"
#include "metal_memory.h"
#include "metal_pipelines.h"

namespace millrace {

class MetalGraph;

// An update of a learner is two command buffers; the learner should get a few of them ahead.
constexpr size_t kMaxInFlight = 8;

// Of the device's clock, in seconds: when what was committed before a mark ended, and when what was
// committed behind it began; 0 until then.
struct GpuTimes {
  double end = 0, next_start = 0;
};

class MetalQueue {
 public:
  MetalQueue(id<MTLDevice> device, MetalErrors& errors, const MetalMemory& memory,
             const MetalPipelines& pipelines);
  // Waits for what was committed; drops what was not, which nobody can have asked for.
  ~MetalQueue();
  MetalQueue(const MetalQueue&) = delete;
  MetalQueue& operator=(const MetalQueue&) = delete;

  // Before anything else. 0, or the code of what was kept, as everywhere here.
  int open();
  // Makes the calling thread the owner if there is none; refused to another one, and when the
  // device is poisoned.
  int assert_owner(const char* operation);
  // Owner: what was encoded begins to run. *number: what will then be complete, everything that was
  // submitted so far; `times`, if not null, are filled in when it is.
  int commit(std::shared_ptr<GpuTimes> times, uint64_t* number);

  bool is_complete(uint64_t number) const;
  // Also ends when the device is poisoned, with that error.
  int wait(uint64_t number);
  GpuTimes read(const GpuTimes& times) const;
  // The last reference to something that submitted work may still use.
  void retire(objc_ref<id<MTLResource>> resource);

 private:
  friend class ComputeScope;

  // Bytes of staging that go to the host's own memory once the GPU has written them.
  struct Delivery {
    const char* from;
    char* to;
    uint64_t to_pitch_bytes, row_bytes, rows;
  };
  struct Submission {
    uint64_t number = 0;
    objc_ref<id<MTLCommandBuffer>> commands;
    BufferRef arena;  // arguments of kernels and staged bytes
    uint64_t arena_used = 0;
    std::vector<objc_ref<id<MTLResource>>> kept;
    std::vector<Delivery> deliveries;
    std::vector<std::shared_ptr<GpuTimes>> end_times, start_times;
    bool is_done = false;
  };

  int open_submission();
  int commit_if_full();
  void finish(Submission& submission);
  void deliver(const Submission& submission) const;
  int keep_failure(id<MTLCommandBuffer> commands);

  const id<MTLDevice> device_;
  MetalErrors& errors_;
  const MetalMemory& memory_;
  const MetalPipelines& pipelines_;
  objc_ref<id<MTLCommandQueue>> queue_;
  std::atomic<std::thread::id> owner_{};

  mutable std::mutex mutex_;  // guards all that follows
  std::condition_variable moved_;
  std::vector<std::unique_ptr<Submission>> submissions_;
  std::vector<Submission*> idle_;
  std::deque<Submission*> in_flight_;  // in order of commit
  Submission* open_ = nullptr;         // what it holds is the owner's
  uint64_t committed_ = 0, completed_ = 0;
  double last_end_ = 0;
  std::vector<std::shared_ptr<GpuTimes>> marks_;  // that wait for the next submission's start
};

// One compute pass: an encoder that is open as long as the scope is. It declares all memory of the
// table, and its dispatches run one after the other. Owner thread; one at a time.
class ComputeScope {
 public:
  ComputeScope(MetalQueue& queue, const char* operation);
  ~ComputeScope();
  ComputeScope(const ComputeScope&) = delete;
  ComputeScope& operator=(const ComputeScope&) = delete;

  // Of opening it; where it is not 0 nothing else may be called.
  int code() const { return code_; }

  int encode(const MetalDispatches& dispatches);
  void replay(const MetalGraph& graph);

  // Memory that both sides see until the pass is complete.
  struct Staging {
    char* bytes;
    void* gpu_address;
  };
  int stage(uint64_t bytes, Staging* staging);
  // Once the pass is complete: rows from staging to memory of the host, packed to pitched.
  void deliver(const Staging& from, void* to, uint64_t to_pitch_bytes, uint64_t row_bytes,
               uint64_t rows);

 private:
  struct Place {
    id<MTLBuffer> buffer;
    uint64_t offset;
  };
  int take(uint64_t bytes, Place* place);
  int encode_copy(const MetalDispatch& copy);
  int encode_kernel(const MetalDispatch& dispatch);
  void declare(id<MTLBuffer> buffer);

  MetalQueue& queue_;
  const char* const operation_;
  MetalQueue::Submission* submission_ = nullptr;
  id<MTLComputeCommandEncoder> encoder_ = nil;
  int code_ = 0;
};

}  // namespace millrace

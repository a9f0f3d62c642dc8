#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

// Records are counted: a wait is for the last one that was enqueued before it.
struct CUevent_st {
  uint64_t enqueued = 0, done = 0;
};

namespace {

struct Operation {
  std::function<void()> run;
  const CUevent_st* event;  // that must have come so far, or null
  uint64_t count;

  bool can_run() const { return event == nullptr || event->done >= count; }
};

}  // namespace

struct CUstream_st {
  std::deque<Operation> waiting;
};

namespace device_shim {
namespace {

// Orders never repeat themselves three times over (Thue-Morse): however few the turns, both come.
bool is_odd(uint64_t number) { return __builtin_parityll(number) != 0; }

// The streams of one thread, the default one first.
class Streams {
 public:
  Streams() { all_.push_back(std::make_unique<CUstream_st>()); }

  CUstream_st* create() {
    all_.push_back(std::make_unique<CUstream_st>());
    return all_.back().get();
  }
  void destroy(CUstream_st* stream) {
    finish();
    all_.erase(std::find_if(all_.begin(), all_.end(),
                            [stream](const auto& one) { return one.get() == stream; }));
  }
  void enqueue(CUstream_st* stream, Operation operation) {
    (stream == nullptr ? all_.front().get() : stream)->waiting.push_back(std::move(operation));
  }

  void finish() {
    try {
      while (CUstream_st* const stream = next()) {
        const Operation operation = std::move(stream->waiting.front());
        stream->waiting.pop_front();
        operation.run();
      }
    } catch (...) {
      for (const auto& stream : all_) stream->waiting.clear();
      throw;
    }
  }

 private:
  // Null once nothing waits.
  CUstream_st* next() {
    std::vector<CUstream_st*> ready;
    bool is_empty = true;
    for (const auto& stream : all_) {
      if (stream->waiting.empty()) continue;
      is_empty = false;
      if (stream->waiting.front().can_run()) ready.push_back(stream.get());
    }
    if (is_empty) return nullptr;
    if (ready.empty()) throw std::logic_error("streams wait for each other");
    return is_odd(++operations_) ? ready.back() : ready.front();
  }

  std::vector<std::unique_ptr<CUstream_st>> all_;
  uint64_t operations_ = 0;
};

Streams& streams() {
  static thread_local Streams all;
  return all;
}

}  // namespace
}  // namespace device_shim

using device_shim::streams;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = streams().create();
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  streams().destroy(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  streams().enqueue(stream, {[] {}, event, event->enqueued});
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const uint64_t count = ++event->enqueued;
  streams().enqueue(stream, {[event, count] { event->done = count; }, nullptr, 0});
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  streams().enqueue(stream, {[=] { std::memcpy(to, from, bytes); }, nullptr, 0});
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  streams().finish();
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

// An H100's.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 9;
  return cudaSuccess;
}

namespace device_shim {
namespace {

constexpr unsigned kMaxThreads = 1024, kMaxGridYz = 65535;
constexpr size_t kSharedBytesOfAll = 48 << 10, kMaxSharedBytes = 227 << 10;

struct Asked {
  std::mutex mutex;
  std::map<const void*, size_t> shared_bytes;  // by kernel
};

Asked& asked() {
  static Asked all;
  return all;
}

size_t allowed_shared_bytes(const void* kernel) {
  std::lock_guard<std::mutex> lock(asked().mutex);
  const auto found = asked().shared_bytes.find(kernel);
  return found == asked().shared_bytes.end() ? kSharedBytesOfAll : found->second;
}

// A last warp of fewer lanes: those that do not exist return at once, so that it must not wait.
void run_thread(void* body, uint32_t thread) {
  if (thread < blockDim.x) (*static_cast<const std::function<void()>*>(body))();
}

void run_grid(const dim3& grid, const dim3& threads, size_t shared_bytes,
              std::function<void()> body) {
  const std::unique_ptr<float4[]> memory(
      new float4[(shared_bytes + sizeof(float4) - 1) / sizeof(float4)]);
  const uint32_t whole_warps = (threads.x + kSimdWidth - 1) / kSimdWidth * kSimdWidth;
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  const bool is_backward = is_odd(block_number);
  for (uint64_t turn = 0; turn < blocks; ++turn) {
    const uint64_t at = is_backward ? blocks - 1 - turn : turn;
    blockIdx = {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                static_cast<unsigned>(at / grid.x / grid.y)};
    blockDim = threads;
    gridDim = grid;
    dynamic_memory = memory.get();
    spoil(memory.get(), shared_bytes);
    const Turns turns = is_odd(++block_number) ? Turns::kBackward : Turns::kForward;
    run_threadgroup(whole_warps, turns, run_thread, &body);
  }
}

}  // namespace

void allow_shared_bytes(const void* kernel, int bytes) {
  std::lock_guard<std::mutex> lock(asked().mutex);
  asked().shared_bytes[kernel] = static_cast<size_t>(bytes);
}

cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel,
                   std::function<void()> body) {
  const dim3 grid = config.gridDim, threads = config.blockDim;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || threads.x == 0 || threads.x > kMaxThreads ||
      threads.y != 1 || threads.z != 1 || grid.y > kMaxGridYz || grid.z > kMaxGridYz) {
    return cudaErrorInvalidConfiguration;
  }
  const size_t shared_bytes = config.dynamicSmemBytes;
  if (shared_bytes > kMaxSharedBytes || shared_bytes > allowed_shared_bytes(kernel)) {
    return cudaErrorInvalidValue;
  }
  streams().enqueue(config.stream,
                    {[=] { run_grid(grid, threads, shared_bytes, body); }, nullptr, 0});
  return cudaSuccess;
}

}  // namespace device_shim

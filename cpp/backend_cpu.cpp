// The CPU as a device: work runs on the submit thread when it is submitted, so an event is complete
// as soon as it is recorded. Device memory is host memory.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "backend.h"
#include "budget.h"
#include "program_cpu.h"
#include "program_launch.h"
#include "update_launch.h"

namespace millrace {
namespace {

constexpr uint64_t kDeviceAlignment = 256;
constexpr uint64_t kHostAlignment = 64;

// The one thing that can fail here is memory; the text must outlive the call.
struct CpuDevice {
  std::atomic<int> failed_code{0};
};

struct CpuEvent {
  std::atomic<bool> is_recorded{false};
  std::atomic<int64_t> recorded_ns{0};
};

int open_device(void** device) {
  *device = new CpuDevice;
  return 0;
}

void close_device(void* device) { delete static_cast<CpuDevice*>(device); }

void last_error(void* device, BackendError* error) {
  const int code = static_cast<CpuDevice*>(device)->failed_code.load();
  *error = {"calloc", "backend_cpu.cpp", code, std::strerror(code)};
}

void forget_error(void* device) { static_cast<CpuDevice*>(device)->failed_code = 0; }

int device_facts(void*, DeviceFacts* facts) {
  *facts = {};
  facts->products = "OpenBLAS";
  return 0;
}

// calloc, not a cleared aligned block: large memory then stays untouched (not resident) until rows
// arrive. The block's own address stands before the aligned one.
int allocate(void* device, uint64_t alignment, uint64_t bytes, void** memory) {
  const uint64_t overhead = alignment + sizeof(void*);
  void* block = bytes > UINT64_MAX - overhead ? nullptr : std::calloc(1, bytes + overhead);
  if (block == nullptr) {
    static_cast<CpuDevice*>(device)->failed_code = ENOMEM;
    return ENOMEM;
  }
  const uint64_t first = reinterpret_cast<uintptr_t>(block) + sizeof(void*);
  *memory = reinterpret_cast<void*>((first + alignment - 1) / alignment * alignment);
  static_cast<void**>(*memory)[-1] = block;
  return 0;
}

int allocate_device(void* device, uint64_t bytes, void** memory) {
  return allocate(device, kDeviceAlignment, bytes, memory);
}

int allocate_host(void* device, uint64_t bytes, void** memory) {
  return allocate(device, kHostAlignment, bytes, memory);
}

void free_memory(void*, void* memory) {
  if (memory != nullptr) std::free(static_cast<void**>(memory)[-1]);
}

int memory_free_bytes(void*, uint64_t* bytes) {
  *bytes = available_host_memory().bytes;
  return 0;
}

// What others use of the host's memory moves all the time and says nothing here.
int memory_census(void*, MemoryCensus* census) {
  *census = {};
  return 0;
}

int create_stream(void* device, void** stream) {
  *stream = device;
  return 0;
}

void destroy_stream(void*, void*) {}

int copy_async(void*, CopyDirection, void* to, const void* from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
  return 0;
}

int copy_2d_async(void*, CopyDirection, void* to, uint64_t to_pitch_bytes, const void* from,
                  uint64_t from_pitch_bytes, uint64_t row_bytes, uint64_t rows) {
  char* target = static_cast<char*>(to);
  const char* source = static_cast<const char*>(from);
  for (uint64_t row = 0; row < rows; ++row) {
    std::memcpy(target + row * to_pitch_bytes, source + row * from_pitch_bytes, row_bytes);
  }
  return 0;
}

int gather_async(void*, const Gather* gather) {
  const BatchColumns& columns = gather->columns;
  for (uint64_t i = 0; i < gather->count; ++i) {
    const uint64_t row = gather_row(*gather, i) % gather->capacity_rows;
    const float* from = gather->ring + row * gather->row_stride;
    float* to = gather->batch + i * columns.stride;
    if (columns.segment_count == 0) std::memcpy(to, from, gather->row_stride * sizeof(float));
    for (u32 s = 0; s < columns.segment_count; ++s) {
      const ColumnSegment& segment = columns.segments[s];
      std::memcpy(to + segment.to, from + segment.from, segment.count * sizeof(float));
    }
  }
  return 0;
}

int update_async(void*, const UpdateLaunch* launch) {
  for (int env = 0; env < launch->num_envs; ++env) {
    update_robot(SoloTeam(), *launch, env);
  }
  return 0;
}

uint64_t program_scratch_bytes(const Program*) { return 0; }

int program_async(void*, const ProgramLaunch* launch) {
  run_on_cpu(*launch->program, {launch->carriers, *launch->arguments, launch->inputs});
  return 0;
}

int create_event(void*, int, void** event) {
  *event = new CpuEvent;
  return 0;
}

void destroy_event(void*, void* event) { delete static_cast<CpuEvent*>(event); }

int record_event(void*, void* event) {
  static_cast<CpuEvent*>(event)->recorded_ns =
      std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  static_cast<CpuEvent*>(event)->is_recorded.store(true, std::memory_order_release);
  return 0;
}

int query_event(void* event, int* is_complete) {
  *is_complete = static_cast<CpuEvent*>(event)->is_recorded.load(std::memory_order_acquire);
  return 0;
}

// Nothing to wait for: the work before a recorded event has run.
int wait_event(void* event) {
  int is_complete = 0;
  return query_event(event, &is_complete);
}

// The other stream's work has run, too.
int stream_wait_event(void*, void*) { return 0; }

int elapsed_ns(void* begin, void* end, double* ns) {
  *ns = static_cast<double>(static_cast<CpuEvent*>(end)->recorded_ns -
                            static_cast<CpuEvent*>(begin)->recorded_ns);
  return 0;
}

}  // namespace

const BackendApi& backend_cpu() {
  static const BackendApi api = {
      kBackendApiVersion,
      "cpu",
      1,
      0,
      precision_bit(Precision::kFp32),
      0,
      open_device,
      close_device,
      last_error,
      forget_error,
      device_facts,
      allocate_device,
      free_memory,
      allocate_host,
      free_memory,
      memory_free_bytes,
      memory_census,
      create_stream,
      destroy_stream,
      copy_async,
      copy_2d_async,
      gather_async,
      update_async,
      program_scratch_bytes,
      program_async,
      create_event,
      destroy_event,
      record_event,
      query_event,
      wait_event,
      stream_wait_event,
      elapsed_ns,
      nullptr,
      nullptr,
      nullptr,
      nullptr,
      nullptr,
  };
  return api;
}

}  // namespace millrace

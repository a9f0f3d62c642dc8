// The table of the Metal plug-in: every function finds its object and hands over to it.
#include "metal_backend.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "metal_device.h"
#include "program_metal.h"

namespace millrace {
namespace {

constexpr const char* kForeignMemory =
    "a replay object cannot hold a copy from or to host memory that the table did not allocate";

MetalDevice& device_of(void* device) { return *static_cast<MetalDevice*>(device); }
MetalStream& stream_of(void* stream) { return *static_cast<MetalStream*>(stream); }
MetalEvent& event_of(void* event) { return *static_cast<MetalEvent*>(event); }

// Where a device that could not be opened left its error, for last_error(nullptr).
MetalErrors& open_errors() {
  static MetalErrors errors;
  return errors;
}

int open_device(void** device) {
  @autoreleasepool {
    std::string reason;
    objc_ref<id<MTLDevice>> found = system_device(&reason);
    if (!found) return open_errors().keep("open", MR_SITE, kMetalUnavailable, reason);
    auto opened = std::make_unique<MetalDevice>(std::move(found));
    int code = opened->pipelines.build(opened->device.get(), opened->errors);
    if (code == 0) code = opened->queue.open();
    if (code != 0) {
      const BackendError error = opened->errors.first();
      return open_errors().keep(error.operation, error.site, code, error.meaning);
    }
    *device = opened.release();
    return 0;
  }
}

void close_device(void* device) {
  @autoreleasepool {
    delete &device_of(device);
  }
}

void last_error(void* device, BackendError* error) {
  *error = (device == nullptr ? open_errors() : device_of(device).errors).first();
}

void forget_error(void* device) { device_of(device).errors.forget(); }

int device_facts(void*, DeviceFacts* facts) {
  @autoreleasepool {
    return fill_facts(facts);
  }
}

// ---- memory ----

int allocate(void* device, MetalMemory::Kind kind, const char* operation, uint64_t bytes,
             void** memory) {
  @autoreleasepool {
    MetalDevice& owner = device_of(device);
    *memory = owner.memory.allocate(kind, bytes);
    if (*memory != nullptr) return 0;
    return owner.errors.keep(operation, MR_SITE, kMetalOutOfMemory,
                             "no buffer of " + std::to_string(bytes) + " bytes");
  }
}

void release(void* device, MetalMemory::Kind kind, const char* operation, void* memory) {
  if (memory == nullptr) return;
  @autoreleasepool {
    MetalDevice& owner = device_of(device);
    const BufferRef buffer = owner.memory.release(kind, memory);
    if (!buffer) {
      owner.errors.keep(operation, MR_SITE, kMetalNotMemory, "what was freed is no block");
      return;
    }
    owner.queue.retire(objc_ref<id<MTLResource>>::retain(buffer.get()));
  }
}

int allocate_device(void* device, uint64_t bytes, void** memory) {
  return allocate(device, MetalMemory::Kind::kDevice, "allocate_device", bytes, memory);
}

void free_device(void* device, void* memory) {
  release(device, MetalMemory::Kind::kDevice, "free_device", memory);
}

int allocate_host(void* device, uint64_t bytes, void** memory) {
  return allocate(device, MetalMemory::Kind::kHost, "allocate_host", bytes, memory);
}

void free_host(void* device, void* memory) {
  release(device, MetalMemory::Kind::kHost, "free_host", memory);
}

int memory_free_bytes(void* device, uint64_t* bytes) {
  @autoreleasepool {
    id<MTLDevice> metal = device_of(device).device.get();
    const uint64_t all = [metal recommendedMaxWorkingSetSize];
    const uint64_t used = [metal currentAllocatedSize];
    *bytes = all - std::min(all, used);
    return 0;
  }
}

int memory_census(void* device, MemoryCensus* census) {
  @autoreleasepool {
    *census = {};
    census->device_used_bytes = [device_of(device).device.get() currentAllocatedSize];
    return 0;
  }
}

// ---- streams ----

int create_stream(void* device, void** stream) {
  *stream = new MetalStream{device_of(device), nullptr};
  return 0;
}

void destroy_stream(void*, void* stream) { delete &stream_of(stream); }

int break_capture(MetalStream& stream, const char* operation, const char* meaning) {
  stream.capture->is_valid = false;
  return stream.device.errors.keep(operation, MR_SITE, kMetalCapture, meaning);
}

// Into the capture, without what only the host can see.
int record(MetalStream& stream, const char* operation, const MetalDispatches& dispatches) {
  for (const MetalDispatch& dispatch : dispatches.all()) {
    if (dispatch.kernel == nullptr) {
      const auto source =
          stream.device.memory.gpu_address(dispatch.copy_from_host, dispatch.copy_bytes);
      if (!source) {
        return break_capture(stream, operation, kForeignMemory);
      }
      add_copy_rows(stream.capture->dispatches, dispatch.copy_to, dispatch.copy_bytes,
                    reinterpret_cast<void*>(*source), dispatch.copy_bytes, dispatch.copy_bytes, 1);
    } else {
      stream.capture->dispatches.add(dispatch);
    }
  }
  return 0;
}

int submit(MetalStream& stream, const char* operation, const MetalDispatches& dispatches) {
  if (stream.capture) return record(stream, operation, dispatches);
  ComputeScope scope(stream.device.queue, operation);
  return scope.code() != 0 ? scope.code() : scope.encode(dispatches);
}

// Rows between two places; the host's memory of one that is not the table's is staged.
struct Rows {
  void* to;
  uint64_t to_pitch_bytes;
  const void* from;
  uint64_t from_pitch_bytes, row_bytes, rows;

  uint64_t to_bytes() const { return (rows - 1) * to_pitch_bytes + row_bytes; }
  uint64_t from_bytes() const { return (rows - 1) * from_pitch_bytes + row_bytes; }
};

void add(MetalDispatches& dispatches, const Rows& copy) {
  add_copy_rows(dispatches, copy.to, copy.to_pitch_bytes, copy.from, copy.from_pitch_bytes,
                copy.row_bytes, copy.rows);
}

int copy_from_staging(MetalStream& stream, const char* operation, Rows copy) {
  ComputeScope scope(stream.device.queue, operation);
  if (scope.code() != 0) return scope.code();
  ComputeScope::Staging staging{};
  if (const int code = scope.stage(copy.row_bytes * copy.rows, &staging)) return code;
  for (uint64_t row = 0; row < copy.rows; ++row) {
    std::memcpy(staging.bytes + row * copy.row_bytes,
                static_cast<const char*>(copy.from) + row * copy.from_pitch_bytes, copy.row_bytes);
  }
  copy.from = staging.gpu_address;
  copy.from_pitch_bytes = copy.row_bytes;
  MetalDispatches dispatches;
  add(dispatches, copy);
  return scope.encode(dispatches);
}

int copy_to_staging(MetalStream& stream, const char* operation, Rows copy) {
  ComputeScope scope(stream.device.queue, operation);
  if (scope.code() != 0) return scope.code();
  ComputeScope::Staging staging{};
  if (const int code = scope.stage(copy.row_bytes * copy.rows, &staging)) return code;
  scope.deliver(staging, copy.to, copy.to_pitch_bytes, copy.row_bytes, copy.rows);
  copy.to = staging.gpu_address;
  copy.to_pitch_bytes = copy.row_bytes;
  MetalDispatches dispatches;
  add(dispatches, copy);
  return scope.encode(dispatches);
}

int copy_rows(MetalStream& stream, const char* operation, CopyDirection direction, Rows copy) {
  if (const int code = stream.device.queue.assert_owner(operation)) return code;
  if (copy.rows == 0 || copy.row_bytes == 0) return 0;
  const bool is_to_host = direction == CopyDirection::kDeviceToHost;
  const bool is_from_host = direction == CopyDirection::kHostToDevice;
  const MetalMemory& memory = stream.device.memory;
  if ((!is_to_host && !memory.has_device_memory(copy.to, copy.to_bytes())) ||
      (!is_from_host && !memory.has_device_memory(copy.from, copy.from_bytes()))) {
    return stream.device.errors.keep(operation, MR_SITE, kMetalNotMemory,
                                     "bytes that are not within one block of device memory");
  }
  if (is_from_host || is_to_host) {
    const auto host = is_to_host ? memory.gpu_address(copy.to, copy.to_bytes())
                                 : memory.gpu_address(copy.from, copy.from_bytes());
    if (!host && stream.capture) return break_capture(stream, operation, kForeignMemory);
    if (!host) return (is_to_host ? copy_to_staging : copy_from_staging)(stream, operation, copy);
    void* const address = reinterpret_cast<void*>(*host);
    if (is_to_host) {
      copy.to = address;
    } else {
      copy.from = address;
    }
  }
  MetalDispatches dispatches;
  add(dispatches, copy);
  return submit(stream, operation, dispatches);
}

int copy_async(void* stream, CopyDirection direction, void* to, const void* from, uint64_t bytes) {
  @autoreleasepool {
    return copy_rows(stream_of(stream), "copy_async", direction,
                     {to, bytes, from, bytes, bytes, 1});
  }
}

int copy_2d_async(void* stream, CopyDirection direction, void* to, uint64_t to_pitch_bytes,
                  const void* from, uint64_t from_pitch_bytes, uint64_t row_bytes, uint64_t rows) {
  @autoreleasepool {
    return copy_rows(stream_of(stream), "copy_2d_async", direction,
                     {to, to_pitch_bytes, from, from_pitch_bytes, row_bytes, rows});
  }
}

int gather_async(void* stream, const Gather* gather) {
  @autoreleasepool {
    MetalStream& queue = stream_of(stream);
    if (const int code = queue.device.queue.assert_owner("gather_async")) return code;
    MetalDispatches dispatches;
    add_gather(dispatches, *gather);
    return submit(queue, "gather_async", dispatches);
  }
}

int update_async(void* stream, const UpdateLaunch* launch) {
  @autoreleasepool {
    MetalStream& queue = stream_of(stream);
    if (const int code = queue.device.queue.assert_owner("update_async")) return code;
    MetalDispatches dispatches;
    add_update(dispatches, *launch);
    return submit(queue, "update_async", dispatches);
  }
}

uint64_t program_scratch_bytes(const Program* program) { return metal_scratch_bytes(*program); }

int program_async(void* stream, const ProgramLaunch* launch) {
  @autoreleasepool {
    MetalStream& queue = stream_of(stream);
    if (const int code = queue.device.queue.assert_owner("program_async")) return code;
    MetalDispatches dispatches;
    const size_t stopped = add_program(dispatches, *launch);
    const auto& records = launch->program->records();
    if (stopped < records.size()) {
      return queue.device.errors.keep(kind_of(records[stopped].op), records[stopped].site.file,
                                      kMetalProgram, "an op that has no kernel on Metal");
    }
    return submit(queue, "program_async", dispatches);
  }
}

// ---- events ----

int create_event(void* device, int is_timed, void** event) {
  *event =
      new MetalEvent{device_of(device), is_timed != 0 ? std::make_shared<GpuTimes>() : nullptr};
  return 0;
}

void destroy_event(void*, void* event) { delete &event_of(event); }

int record_event(void* stream, void* event) {
  @autoreleasepool {
    MetalStream& queue = stream_of(stream);
    MetalEvent& mark = event_of(event);
    if (const int code = queue.device.queue.assert_owner("record_event")) return code;
    if (queue.capture) {
      return break_capture(queue, "record_event", "a replay object cannot hold an event");
    }
    if (mark.times) mark.times = std::make_shared<GpuTimes>();
    uint64_t number = 0;
    if (const int code = queue.device.queue.commit(mark.times, &number)) return code;
    mark.number.store(number, std::memory_order_release);
    mark.is_recorded.store(true, std::memory_order_release);
    return 0;
  }
}

int query_event(void* event, int* is_complete) {
  MetalEvent& mark = event_of(event);
  *is_complete = 0;
  if (const int code = mark.device.errors.check()) return code;
  *is_complete = mark.is_recorded.load(std::memory_order_acquire) &&
                 mark.device.queue.is_complete(mark.number.load(std::memory_order_acquire));
  return 0;
}

int wait_event(void* event) {
  MetalEvent& mark = event_of(event);
  return mark.device.queue.wait(mark.number.load(std::memory_order_acquire));
}

// All streams are one queue: what was submitted before the event is before what comes now.
int stream_wait_event(void* stream, void*) {
  MetalStream& queue = stream_of(stream);
  if (const int code = queue.device.queue.assert_owner("stream_wait_event")) return code;
  if (!queue.capture) return 0;
  return break_capture(queue, "stream_wait_event", "a replay object cannot wait for an event");
}

int elapsed_ns(void* begin, void* end, double* ns) {
  const MetalEvent& first = event_of(begin);
  const MetalEvent& last = event_of(end);
  *ns = 0;
  if (const int code = first.device.errors.check()) return code;
  if (first.number == last.number) return 0;  // nothing was submitted between them
  const MetalQueue& queue = first.device.queue;
  *ns = (queue.read(*last.times).end - queue.read(*first.times).next_start) * 1e9;
  return 0;
}

// ---- replay objects ----

int begin_capture(void* stream) {
  MetalStream& queue = stream_of(stream);
  if (const int code = queue.device.queue.assert_owner("begin_capture")) return code;
  if (queue.capture) return break_capture(queue, "begin_capture", "the stream captures already");
  queue.capture = std::make_unique<MetalStream::Capture>();
  return 0;
}

int capture_status(void* stream, int* is_valid) {
  const MetalStream& queue = stream_of(stream);
  *is_valid = queue.capture && queue.capture->is_valid ? 1 : 0;
  return 0;
}

int end_capture(void* stream, void** graph, GraphNodes* nodes) {
  @autoreleasepool {
    MetalStream& queue = stream_of(stream);
    MetalDevice& owner = queue.device;
    const std::unique_ptr<MetalStream::Capture> capture = std::move(queue.capture);
    if (const int code = owner.queue.assert_owner("end_capture")) return code;
    if (!capture || !capture->is_valid) {
      return owner.errors.keep("end_capture", MR_SITE, kMetalCapture,
                               capture ? "the capture was broken" : "there is no capture");
    }
    const std::vector<MetalDispatch>& dispatches = capture->dispatches.all();
    std::unique_ptr<MetalGraph> made =
        MetalGraph::make(owner.device.get(), owner.pipelines, dispatches, owner.errors);
    if (!made) return kMetalCapture;
    *nodes = {};
    for (const MetalDispatch& dispatch : dispatches) {
      ++(std::strncmp(dispatch.kernel, "copy_", 5) == 0 ? nodes->copies : nodes->kernels);
    }
    *graph = made.release();
    return 0;
  }
}

int launch_graph(void* stream, void* graph) {
  @autoreleasepool {
    MetalStream& queue = stream_of(stream);
    if (const int code = queue.device.queue.assert_owner("launch_graph")) return code;
    if (queue.capture) {
      return break_capture(queue, "launch_graph", "a replay object cannot hold another one");
    }
    ComputeScope scope(queue.device.queue, "launch_graph");
    if (scope.code() == 0) scope.replay(*static_cast<MetalGraph*>(graph));
    return scope.code();
  }
}

void destroy_graph(void* device, void* graph) {
  @autoreleasepool {
    const std::unique_ptr<MetalGraph> ending(static_cast<MetalGraph*>(graph));
    if (!ending || ending->size() == 0) return;
    MetalQueue& queue = device_of(device).queue;
    queue.retire(objc_ref<id<MTLResource>>::retain(ending->commands()));
    queue.retire(objc_ref<id<MTLResource>>::retain(ending->arguments()));
  }
}

const BackendApi kApi = {
    kBackendApiVersion,
    "metal",
    0,
    1,
    precision_bit(Precision::kFp32),
    1,
    open_device,
    close_device,
    last_error,
    forget_error,
    device_facts,
    allocate_device,
    free_device,
    allocate_host,
    free_host,
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
    begin_capture,
    capture_status,
    end_capture,
    launch_graph,
    destroy_graph,
};

}  // namespace
}  // namespace millrace

extern "C" const millrace::BackendApi* millrace_backend(char* text, uint64_t text_bytes) {
  @autoreleasepool {
    std::string reason;
    const auto device = millrace::system_device(&reason);
    std::snprintf(text, text_bytes, "%s",
                  (device ? millrace::describe(device.get()) : reason).c_str());
    return device ? &millrace::kApi : nullptr;
  }
}

// The table of fake_cuda: every function finds its device and hands over to FakeCuda.
#include "fake_cuda.h"
#include "program_launch.h"
#include "update_launch.h"

namespace millrace {

constexpr int kOutOfMemory = 2;

struct FakeCudaTable {
  using Event = std::shared_ptr<FakeCuda::Event>;

  static FakeCuda& device_of(void* device) { return *static_cast<FakeCuda*>(device); }
  static FakeCuda::Stream& stream_of(void* stream) {
    return *static_cast<FakeCuda::Stream*>(stream);
  }
  static Event& event_of(void* event) { return *static_cast<Event*>(event); }

  static int open(void** device) {
    *device = new FakeCuda;
    return 0;
  }
  static void close(void* device) {
    FakeCuda& closing = device_of(device);
    for (FakeCudaMemory* memory : {&closing.device_memory_, &closing.host_memory_}) {
      const std::string wrong = memory->first_broken();
      if (!wrong.empty()) FakeCuda::violation(wrong);
      if (memory->live_bytes() > 0 && closing.sticky_code_ == 0) {
        FakeCuda::violation(std::to_string(memory->live_bytes()) + " bytes were not freed");
      }
    }
    if (!closing.graphs_.empty() && closing.sticky_code_ == 0)
      FakeCuda::violation("a graph was not destroyed");
    delete &closing;
  }
  static void last_error(void* device, BackendError* error) {
    FakeCuda& owner = device_of(device);
    FakeCuda::Lock lock(owner.mutex_);
    *error = owner.first_error_;
  }
  // A sticky error stays: the next call fails with it again.
  static void forget_error(void* device) {
    FakeCuda& owner = device_of(device);
    FakeCuda::Lock lock(owner.mutex_);
    owner.first_error_ = {"none", "fake_cuda.cpp", 0, "no error"};
  }
  static int device_facts(void* device, DeviceFacts* facts) {
    *facts = {13000, 13000, 0, 0, "the CPU"};
    return device_of(device).check("device_facts", true);
  }

  static int allocate(FakeCuda& owner, const char* function, FakeCudaMemory& from, uint64_t bytes,
                      void** memory) {
    if (const int code = owner.check(function, false)) return code;
    FakeCuda::Lock lock(owner.mutex_);
    *memory = from.allocate(bytes);
    return *memory != nullptr ? 0 : owner.fail_with(function, kOutOfMemory);
  }
  static int allocate_device(void* device, uint64_t bytes, void** memory) {
    FakeCuda& owner = device_of(device);
    return allocate(owner, "allocate_device", owner.device_memory_, bytes, memory);
  }
  static int allocate_host(void* device, uint64_t bytes, void** memory) {
    FakeCuda& owner = device_of(device);
    return allocate(owner, "allocate_host", owner.host_memory_, bytes, memory);
  }
  static void release(FakeCuda& owner, const char* function, FakeCudaMemory& to, void* memory) {
    if (memory == nullptr || owner.check(function, false) != 0) return;
    FakeCuda::Lock lock(owner.mutex_);
    const std::string wrong = to.free(memory);
    if (!wrong.empty()) FakeCuda::violation(wrong);
  }
  static void free_device(void* device, void* memory) {
    FakeCuda& owner = device_of(device);
    release(owner, "free_device", owner.device_memory_, memory);
  }
  static void free_host(void* device, void* memory) {
    FakeCuda& owner = device_of(device);
    release(owner, "free_host", owner.host_memory_, memory);
  }
  static int memory_free_bytes(void* device, uint64_t* bytes) {
    *bytes = uint64_t{1} << 30;
    return device_of(device).check("memory_free_bytes", true);
  }
  static int memory_census(void* device, MemoryCensus* census) {
    FakeCuda& owner = device_of(device);
    if (const int code = owner.check("memory_census", true)) return code;
    FakeCuda::Lock lock(owner.mutex_);
    *census = owner.driver_memory_;
    census->device_used_bytes += owner.device_memory_.live_bytes();
    return 0;
  }

  static int create_stream(void* device, void** stream) {
    FakeCuda& owner = device_of(device);
    if (const int code = owner.check("create_stream", true)) return code;
    FakeCuda::Lock lock(owner.mutex_);
    owner.streams_.push_back(std::make_unique<FakeCuda::Stream>(FakeCuda::Stream{owner}));
    *stream = owner.streams_.back().get();
    return 0;
  }
  // What it still has to do is done all the same.
  static void destroy_stream(void*, void*) {}
  static int copy_async(void* stream, CopyDirection direction, void* to, const void* from,
                        uint64_t bytes) {
    FakeCuda& owner = stream_of(stream).device;
    return owner.submit(stream_of(stream), "copy_async", &GraphNodes::copies, [=, &owner](bool) {
      if (const int code = owner.use_copy(direction, to, bytes, from, bytes)) return code;
      return backend_cpu().copy_async(nullptr, direction, to, from, bytes);
    });
  }
  static int copy_2d_async(void* stream, CopyDirection direction, void* to, uint64_t to_pitch_bytes,
                           const void* from, uint64_t from_pitch_bytes, uint64_t row_bytes,
                           uint64_t rows) {
    FakeCuda& owner = stream_of(stream).device;
    const auto op = [=, &owner](bool) {
      if (rows == 0) return 0;
      const uint64_t to_bytes = (rows - 1) * to_pitch_bytes + row_bytes;
      const uint64_t from_bytes = (rows - 1) * from_pitch_bytes + row_bytes;
      if (const int code = owner.use_copy(direction, to, to_bytes, from, from_bytes)) return code;
      return backend_cpu().copy_2d_async(nullptr, direction, to, to_pitch_bytes, from,
                                         from_pitch_bytes, row_bytes, rows);
    };
    return owner.submit(stream_of(stream), "copy_2d_async", &GraphNodes::copies, op);
  }
  static int gather_async(void* stream, const Gather* gather) {
    FakeCuda& owner = stream_of(stream).device;
    const auto op = [work = *gather, &owner](bool) {
      const uint64_t ring_bytes = work.capacity_rows * work.row_stride * sizeof(float);
      if (const int code = owner.use_device(work.ring, ring_bytes, "a gather")) return code;
      if (const int code = owner.use_device(work.batch, sizeof(float), "a gather")) return code;
      return backend_cpu().gather_async(nullptr, &work);
    };
    return owner.submit(stream_of(stream), "gather_async", &GraphNodes::kernels, op);
  }
  static int update_async(void* stream, const UpdateLaunch* launch) {
    FakeCuda& owner = stream_of(stream).device;
    const auto op = [work = *launch, &owner](bool is_replay) {
      if (const int code = owner.use_launch(work)) return code;
      const bool is_other = is_replay && owner.replay_kernel_ != nullptr;
      return (is_other ? owner.replay_kernel_ : backend_cpu().update_async)(nullptr, &work);
    };
    return owner.submit(stream_of(stream), "update_async", &GraphNodes::kernels, op);
  }

  // The carriers' addresses and what the run brings are fixed with the launch; what the argument
  // block says of a run is read when it runs.
  static int program_async(void* stream, const ProgramLaunch* launch) {
    FakeCuda& owner = stream_of(stream).device;
    const InputCounts& takes = launch->program->takes();
    const auto copy_of = [](auto* values, size_t count) {
      using Value = std::decay_t<decltype(*values)>;
      return values == nullptr ? std::vector<Value>() : std::vector<Value>(values, values + count);
    };
    const auto op = [work = *launch, &owner,
                     scalars = copy_of(launch->inputs.scalars, takes.scalars),
                     inputs = copy_of(launch->inputs.inputs, takes.inputs()),
                     buffers = copy_of(launch->inputs.buffers, takes.buffers)](bool) {
      ProgramLaunch as_launched = work;
      as_launched.inputs.scalars = scalars.data();
      as_launched.inputs.inputs = inputs.data();
      as_launched.inputs.buffers = buffers.data();
      const int code = owner.use_device(work.arguments, sizeof(*work.arguments), "a program");
      return code != 0 ? code : backend_cpu().program_async(nullptr, &as_launched);
    };
    return owner.submit(stream_of(stream), "program_async", &GraphNodes::kernels, op);
  }

  static int create_event(void* device, int, void** event) {
    FakeCuda& owner = device_of(device);
    if (const int code = owner.check("create_event", true)) return code;
    *event = new Event(std::make_shared<FakeCuda::Event>(FakeCuda::Event{owner}));
    return 0;
  }
  static void destroy_event(void*, void* event) { delete &event_of(event); }
  static int record_event(void* stream, void* event) {
    return stream_of(stream).device.record(stream_of(stream), event_of(event));
  }
  static int query_event(void* event, int* is_complete) {
    return event_of(event)->device.query(*event_of(event), is_complete);
  }
  static int wait_event(void* event) { return event_of(event)->device.wait(*event_of(event)); }
  static int stream_wait_event(void* stream, void* event) {
    return stream_of(stream).device.stream_wait(stream_of(stream), event_of(event));
  }
  static int elapsed_ns(void* begin, void* end, double* ns) {
    *ns = event_of(end)->completed_ns - event_of(begin)->completed_ns;
    return event_of(end)->device.check("elapsed_ns", true);
  }

  static int begin_capture(void* stream) {
    return stream_of(stream).device.begin_capture(stream_of(stream));
  }
  static int capture_status(void* stream, int* is_valid) {
    FakeCuda& owner = stream_of(stream).device;
    const int code = owner.check("capture_status", true);
    FakeCuda::Lock lock(owner.mutex_);
    const auto& capture = stream_of(stream).capture;
    *is_valid = capture && capture->is_valid ? 1 : 0;
    return code;
  }
  static int end_capture(void* stream, void** graph, GraphNodes* nodes) {
    return stream_of(stream).device.end_capture(stream_of(stream), graph, nodes);
  }
  static int launch_graph(void* stream, void* graph) {
    return stream_of(stream).device.launch(stream_of(stream), graph);
  }
  static void destroy_graph(void* device, void* graph) { device_of(device).destroy(graph); }
};

const BackendApi& fake_cuda() {
  using Table = FakeCudaTable;
  static const BackendApi api = {
      kBackendApiVersion,
      "fake_cuda",
      0,
      1,
      backend_cpu().precisions,
      0,
      Table::open,
      Table::close,
      Table::last_error,
      Table::forget_error,
      Table::device_facts,
      Table::allocate_device,
      Table::free_device,
      Table::allocate_host,
      Table::free_host,
      Table::memory_free_bytes,
      Table::memory_census,
      Table::create_stream,
      Table::destroy_stream,
      Table::copy_async,
      Table::copy_2d_async,
      Table::gather_async,
      Table::update_async,
      backend_cpu().program_scratch_bytes,
      Table::program_async,
      Table::create_event,
      Table::destroy_event,
      Table::record_event,
      Table::query_event,
      Table::wait_event,
      Table::stream_wait_event,
      Table::elapsed_ns,
      Table::begin_capture,
      Table::capture_status,
      Table::end_capture,
      Table::launch_graph,
      Table::destroy_graph,
  };
  return api;
}

}  // namespace millrace

// The CUDA plug-in: the first device of the CUDA runtime as a BackendApi. Everything but
// millrace_backend() is hidden; the runtime is linked statically, so that a driver is all it needs.
#include <cuda_runtime.h>
#include <link.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "cuda_check.cuh"
#include "gather_cuda.cuh"
#include "joined_layer.cuh"
#include "program_cuda.cuh"
#include "update_cuda.cuh"

namespace millrace {
namespace {

constexpr int kDeviceIndex = 0;
constexpr int kOldestMajor = 8;  // the kernels are compiled for sm_80 and later
// cudaDevAttrMpsEnabled, which older toolkits do not name.
constexpr auto kSharingAttribute = static_cast<cudaDeviceAttr>(133);

// The handle of a device is its error cell: it has no other state.
CudaErrors& device_of(void* device) { return *static_cast<CudaErrors*>(device); }

struct CudaStream {
  CudaErrors& device;
  cudaStream_t stream;
  std::unique_ptr<CublasLt> library;  // of this stream's matrix products, from their first launch
  bool has_looked_for_library = false;
  CudaLanes lanes{stream};  // of this stream's programs
};

CudaStream& stream_of(void* stream) { return *static_cast<CudaStream*>(stream); }

// CUDA calls an event that was never recorded complete; the contract does not.
struct CudaEvent {
  CudaErrors& device;
  cudaEvent_t event;
  std::atomic<bool> is_recorded{false};
};

CudaEvent& event_of(void* event) { return *static_cast<CudaEvent*>(event); }

// Every thread has a current device of its own. Nobody else changes it: this runtime is linked into
// this plug-in alone. Asked for on every call it would be a tenth of what a submission costs.
int use(CudaErrors& device) {
  thread_local bool is_set = false;
  if (is_set) return 0;
  const int code = MR_CUDA(device, cudaSetDevice, kDeviceIndex);
  is_set = code == 0;
  return code;
}

// Where a device that could not be opened left its error, for last_error(nullptr).
CudaErrors& open_errors() {
  static CudaErrors errors;
  return errors;
}

int open_device(void** device) {
  if (const int code = use(open_errors())) return code;  // makes the context
  *device = new CudaErrors;
  return 0;
}

void close_device(void* device) { delete &device_of(device); }

void last_error(void* device, BackendError* error) {
  *error = (device == nullptr ? open_errors() : device_of(device)).first();
}

void forget_error(void* device) {
  device_of(device).forget();
  cudaGetLastError();
}

// A profiler comes as a library that the driver or the linker put into this process.
int is_profiler(dl_phdr_info* library, size_t, void*) {
  const char* path = library->dlpi_name;
  return path != nullptr && (std::strstr(path, "libcupti") != nullptr ||
                             std::strstr(path, "libToolsInjection") != nullptr);
}

const char* describe_products() {
  static const std::string text =
      CublasLt::describe() +
      std::string(can_join_layers()
                      ? "; in bf16, wide first layers with what follows by our own kernel"
                      : "");
  return text.c_str();
}

int device_facts(void* device, DeviceFacts* facts) {
  CudaErrors& owner = device_of(device);
  if (const int code = use(owner)) return code;
  if (const int code = MR_CUDA(owner, cudaDriverGetVersion, &facts->driver_version)) return code;
  if (const int code = MR_CUDA(owner, cudaRuntimeGetVersion, &facts->runtime_version)) return code;
  if (const int code = MR_CUDA(owner, cudaDeviceGetAttribute, &facts->is_shared, kSharingAttribute,
                               kDeviceIndex)) {
    return code;
  }
  facts->products = describe_products();
  facts->is_profiled = dl_iterate_phdr(is_profiler, nullptr) != 0 ? 1 : 0;
  return 0;
}

int allocate_device(void* device, uint64_t bytes, void** memory) {
  CudaErrors& owner = device_of(device);
  if (const int code = use(owner)) return code;
  void* block = nullptr;
  if (const int code = MR_CUDA(owner, cudaMalloc, &block, bytes)) return code;
  int code = MR_CUDA(owner, cudaMemset, block, 0, bytes);
  // Our streams do not wait for the default one, where the memory is cleared.
  if (code == 0) code = MR_CUDA(owner, cudaStreamSynchronize, nullptr);
  if (code != 0) {
    cudaFree(block);
    return code;
  }
  *memory = block;
  return 0;
}

void free_device(void* device, void* memory) {
  CudaErrors& owner = device_of(device);
  if (use(owner) == 0) MR_CUDA(owner, cudaFree, memory);
}

int allocate_host(void* device, uint64_t bytes, void** memory) {
  CudaErrors& owner = device_of(device);
  if (const int code = use(owner)) return code;
  if (const int code = MR_CUDA(owner, cudaHostAlloc, memory, bytes, cudaHostAllocDefault)) {
    return code;
  }
  std::memset(*memory, 0, bytes);
  return 0;
}

void free_host(void* device, void* memory) {
  CudaErrors& owner = device_of(device);
  if (use(owner) == 0) MR_CUDA(owner, cudaFreeHost, memory);
}

int memory_free_bytes(void* device, uint64_t* bytes) {
  CudaErrors& owner = device_of(device);
  if (const int code = use(owner)) return code;
  size_t free_bytes = 0, all_bytes = 0;
  const int code = MR_CUDA(owner, cudaMemGetInfo, &free_bytes, &all_bytes);
  *bytes = free_bytes;
  return code;
}

int memory_census(void* device, MemoryCensus* census) {
  CudaErrors& owner = device_of(device);
  if (const int code = use(owner)) return code;
  size_t free_bytes = 0, all_bytes = 0;
  if (const int code = MR_CUDA(owner, cudaMemGetInfo, &free_bytes, &all_bytes)) return code;
  census->device_used_bytes = all_bytes - free_bytes;
  if (const int code = MR_CUDA(owner, cudaDeviceGetGraphMemAttribute, kDeviceIndex,
                               cudaGraphMemAttrUsedMemCurrent, &census->graph_used_bytes)) {
    return code;
  }
  if (const int code = MR_CUDA(owner, cudaDeviceGetGraphMemAttribute, kDeviceIndex,
                               cudaGraphMemAttrReservedMemCurrent, &census->graph_reserved_bytes)) {
    return code;
  }
  cudaMemPool_t pool = nullptr;
  if (const int code = MR_CUDA(owner, cudaDeviceGetDefaultMemPool, &pool, kDeviceIndex)) {
    return code;
  }
  if (const int code = MR_CUDA(owner, cudaMemPoolGetAttribute, pool, cudaMemPoolAttrUsedMemCurrent,
                               &census->pool_used_bytes)) {
    return code;
  }
  return MR_CUDA(owner, cudaMemPoolGetAttribute, pool, cudaMemPoolAttrReservedMemCurrent,
                 &census->pool_reserved_bytes);
}

int create_stream(void* device, void** stream) {
  CudaErrors& owner = device_of(device);
  if (const int code = use(owner)) return code;
  cudaStream_t created = nullptr;
  const int code = MR_CUDA(owner, cudaStreamCreateWithFlags, &created, cudaStreamNonBlocking);
  if (code == 0) *stream = new CudaStream{owner, created, nullptr};
  return code;
}

void destroy_stream(void*, void* stream) {
  CudaStream* queue = &stream_of(stream);
  if (use(queue->device) == 0) MR_CUDA(queue->device, cudaStreamDestroy, queue->stream);
  delete queue;
}

cudaMemcpyKind kind_of(CopyDirection direction) {
  switch (direction) {
    case CopyDirection::kHostToDevice:
      return cudaMemcpyHostToDevice;
    case CopyDirection::kDeviceToHost:
      return cudaMemcpyDeviceToHost;
    case CopyDirection::kDeviceToDevice:
      return cudaMemcpyDeviceToDevice;
  }
  return cudaMemcpyDefault;
}

int copy_async(void* stream, CopyDirection direction, void* to, const void* from, uint64_t bytes) {
  CudaStream& queue = stream_of(stream);
  if (const int code = use(queue.device)) return code;
  return MR_CUDA(queue.device, cudaMemcpyAsync, to, from, bytes, kind_of(direction), queue.stream);
}

int copy_2d_async(void* stream, CopyDirection direction, void* to, uint64_t to_pitch_bytes,
                  const void* from, uint64_t from_pitch_bytes, uint64_t row_bytes, uint64_t rows) {
  CudaStream& queue = stream_of(stream);
  if (const int code = use(queue.device)) return code;
  return MR_CUDA(queue.device, cudaMemcpy2DAsync, to, to_pitch_bytes, from, from_pitch_bytes,
                 row_bytes, rows, kind_of(direction), queue.stream);
}

int gather_async(void* stream, const Gather* gather) {
  CudaStream& queue = stream_of(stream);
  if (const int code = use(queue.device)) return code;
  return MR_CUDA(queue.device, launch_gather, queue.stream, *gather);
}

int update_async(void* stream, const UpdateLaunch* launch) {
  CudaStream& queue = stream_of(stream);
  if (const int code = use(queue.device)) return code;
  return MR_CUDA(queue.device, launch_update, queue.stream, *launch);
}

uint64_t program_scratch_bytes(const Program* program) { return scratch_bytes(*program); }

// Null where there is none.
CublasLt* library_of(CudaStream& queue) {
  if (!queue.has_looked_for_library) {
    queue.has_looked_for_library = true;
    queue.library = CublasLt::open();
  }
  return queue.library.get();
}

int program_async(void* stream, const ProgramLaunch* launch) {
  CudaStream& queue = stream_of(stream);
  if (const int code = use(queue.device)) return code;
  CudaFrame frame{};
  frame.stream = queue.stream;
  frame.workspace = &launch->program->workspace();
  frame.carriers = launch->carriers;
  frame.product_copies = launch->product_copies;
  frame.arguments = launch->arguments;
  frame.precision = launch->precision;
  frame.library = launch->products == Products::kLibrary ? library_of(queue) : nullptr;
  frame.joins_layers = launch->products == Products::kLibrary && can_join_layers();
  frame.inputs = launch->inputs;
  size_t at = 0;
  const cudaError_t code =
      launch_program(frame, launch->scratch, *launch->program, launch->order, queue.lanes, &at);
  if (code == cudaSuccess) return 0;
  const Program::Record& record = launch->program->records()[at];
  return queue.device.keep(kind_of(record.op), record.site.file, code);
}

int create_event(void* device, int is_timed, void** event) {
  CudaErrors& owner = device_of(device);
  if (const int code = use(owner)) return code;
  cudaEvent_t created = nullptr;
  const int code = MR_CUDA(owner, cudaEventCreateWithFlags, &created,
                           is_timed != 0 ? cudaEventDefault : cudaEventDisableTiming);
  if (code == 0) *event = new CudaEvent{owner, created};
  return code;
}

void destroy_event(void*, void* event) {
  CudaEvent* mark = &event_of(event);
  if (use(mark->device) == 0) MR_CUDA(mark->device, cudaEventDestroy, mark->event);
  delete mark;
}

int record_event(void* stream, void* event) {
  CudaStream& queue = stream_of(stream);
  CudaEvent& mark = event_of(event);
  if (const int code = use(queue.device)) return code;
  const int code = MR_CUDA(queue.device, cudaEventRecord, mark.event, queue.stream);
  if (code == 0) mark.is_recorded.store(true, std::memory_order_release);
  return code;
}

// A copy that is still running is an answer, not an error.
cudaError_t ask_event(cudaEvent_t event, int* is_complete) {
  const cudaError_t code = cudaEventQuery(event);
  *is_complete = code == cudaSuccess;
  return code == cudaErrorNotReady ? cudaSuccess : code;
}

int query_event(void* event, int* is_complete) {
  CudaEvent& mark = event_of(event);
  *is_complete = 0;
  if (!mark.is_recorded.load(std::memory_order_acquire)) return 0;
  if (const int code = use(mark.device)) return code;
  return MR_CUDA(mark.device, ask_event, mark.event, is_complete);
}

// Spins: a sleeping thread wakes later than the copy of a tick is done and then submits from a cold
// core, and an event that can be slept for costs more to record: bench replay --bandwidth,
// submit_us.
int wait_event(void* event) {
  CudaEvent& mark = event_of(event);
  if (const int code = use(mark.device)) return code;
  return MR_CUDA(mark.device, cudaEventSynchronize, mark.event);
}

int stream_wait_event(void* stream, void* event) {
  CudaStream& queue = stream_of(stream);
  if (const int code = use(queue.device)) return code;
  return MR_CUDA(queue.device, cudaStreamWaitEvent, queue.stream, event_of(event).event, 0);
}

int elapsed_ns(void* begin, void* end, double* ns) {
  CudaEvent& first = event_of(begin);
  if (const int code = use(first.device)) return code;
  float milliseconds = 0;
  const int code =
      MR_CUDA(first.device, cudaEventElapsedTime, &milliseconds, first.event, event_of(end).event);
  *ns = static_cast<double>(milliseconds) * 1e6;
  return code;
}

int begin_capture(void* stream) {
  CudaStream& queue = stream_of(stream);
  if (const int code = use(queue.device)) return code;
  return MR_CUDA(queue.device, cudaStreamBeginCapture, queue.stream,
                 cudaStreamCaptureModeThreadLocal);
}

int capture_status(void* stream, int* is_valid) {
  CudaStream& queue = stream_of(stream);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const int code = MR_CUDA(queue.device, cudaStreamIsCapturing, queue.stream, &status);
  *is_valid = status == cudaStreamCaptureStatusActive;
  return code;
}

int count_nodes(CudaErrors& errors, cudaGraph_t graph, GraphNodes* nodes) {
  size_t count = 0;
  if (const int code = MR_CUDA(errors, cudaGraphGetNodes, graph, nullptr, &count)) return code;
  std::vector<cudaGraphNode_t> all(count);
  if (const int code = MR_CUDA(errors, cudaGraphGetNodes, graph, all.data(), &count)) return code;
  *nodes = {};
  for (cudaGraphNode_t node : all) {
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    if (const int code = MR_CUDA(errors, cudaGraphNodeGetType, node, &type)) return code;
    if (type == cudaGraphNodeTypeKernel) {
      ++nodes->kernels;
    } else if (type == cudaGraphNodeTypeMemcpy) {
      ++nodes->copies;
    } else if (type == cudaGraphNodeTypeMemAlloc || type == cudaGraphNodeTypeMemFree) {
      ++nodes->allocations;
    } else {
      ++nodes->others;
    }
  }
  return 0;
}

// The upload is made here and not in the first replay, which a tick waits for.
int instantiate(CudaStream& queue, cudaGraph_t recorded, cudaGraphExec_t* executable) {
  if (const int code = MR_CUDA(queue.device, cudaGraphInstantiate, executable, recorded, 0)) {
    return code;
  }
  const int code = MR_CUDA(queue.device, cudaGraphUpload, *executable, queue.stream);
  if (code != 0) cudaGraphExecDestroy(*executable);
  return code;
}

int end_capture(void* stream, void** graph, GraphNodes* nodes) {
  CudaStream& queue = stream_of(stream);
  if (const int code = use(queue.device)) return code;
  cudaGraph_t recorded = nullptr;
  if (const int code = MR_CUDA(queue.device, cudaStreamEndCapture, queue.stream, &recorded)) {
    return code;
  }
  cudaGraphExec_t executable = nullptr;
  int code = count_nodes(queue.device, recorded, nodes);
  if (code == 0) code = instantiate(queue, recorded, &executable);
  cudaGraphDestroy(recorded);
  if (code == 0) *graph = executable;
  return code;
}

int launch_graph(void* stream, void* graph) {
  CudaStream& queue = stream_of(stream);
  if (const int code = use(queue.device)) return code;
  return MR_CUDA(queue.device, cudaGraphLaunch, static_cast<cudaGraphExec_t>(graph), queue.stream);
}

void destroy_graph(void* device, void* graph) {
  CudaErrors& owner = device_of(device);
  if (use(owner) == 0) MR_CUDA(owner, cudaGraphExecDestroy, static_cast<cudaGraphExec_t>(graph));
}

const BackendApi kApi = {
    kBackendApiVersion,
    "cuda",
    0,
    1,
    precision_bit(Precision::kFp32) | precision_bit(Precision::kTf32) |
        precision_bit(Precision::kBf16),
    0,
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

bool refuse(char* text, uint64_t text_bytes, const char* operation, cudaError_t code) {
  std::snprintf(text, text_bytes, "%s: %s (%s, %d)", operation, cudaGetErrorString(code),
                cudaGetErrorName(code), static_cast<int>(code));
  cudaGetLastError();
  return false;
}

// Writes what the device is, or why there is none. No call here makes a context, so that asking is
// cheap and takes no device memory.
bool describe_device(char* text, uint64_t text_bytes) {
  int driver = 0, runtime = 0, count = 0;
  cudaError_t code = cudaDriverGetVersion(&driver);
  if (code == cudaSuccess && driver == 0) {  // the runtime would call it an insufficient one
    std::snprintf(text, text_bytes, "there is no NVIDIA driver");
    return false;
  }
  code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess) return refuse(text, text_bytes, "cudaGetDeviceCount", code);
  cudaDeviceProp device{};
  code = cudaGetDeviceProperties(&device, kDeviceIndex);
  if (code != cudaSuccess) return refuse(text, text_bytes, "cudaGetDeviceProperties", code);
  if (device.major < kOldestMajor) {
    std::snprintf(text, text_bytes, "%s has compute capability %d.%d, %d.0 is needed", device.name,
                  device.major, device.minor, kOldestMajor);
    return false;
  }
  cudaRuntimeGetVersion(&runtime);
  std::snprintf(text, text_bytes,
                "%s, compute capability %d.%d, %.1f GiB, CUDA %d.%d, driver for CUDA %d.%d",
                device.name, device.major, device.minor,
                static_cast<double>(device.totalGlobalMem) / (1 << 30), runtime / 1000,
                runtime % 1000 / 10, driver / 1000, driver % 1000 / 10);
  return true;
}

}  // namespace
}  // namespace millrace

extern "C" __attribute__((visibility("default"))) const millrace::BackendApi* millrace_backend(
    char* text, uint64_t text_bytes) {
  return millrace::describe_device(text, text_bytes) ? &millrace::kApi : nullptr;
}

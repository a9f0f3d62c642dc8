// A device as a table of C functions, so that a plug-in library can bring one: memory, in-order
// streams, events, copies, the seeded gather, the update step, programs and graphs of these.
// backend_cpu is the specification; only graphs are beyond it.
//
// Every function returns 0, or not 0 and then last_error() says what happened. Work on one stream
// runs in order of submission. One submit thread per stream makes every submission; Stream asserts
// it. A device may want one for all its streams, and then asserts that itself. Event queries and
// waits may come from any thread. Offsets and sizes are 64 bits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gather.h"
#include "status.h"

namespace millrace {

struct UpdateLaunch;   // update_launch.h
struct ProgramLaunch;  // program_launch.h
class Program;

constexpr uint32_t kBackendApiVersion = 9;

// All four are static texts or codes of the device's own library.
struct BackendError {
  const char* operation;  // "copy"
  const char* site;       // file:line of the failing call
  int code;
  const char* meaning;
};

// Which way a copy goes; a device that is not told must find out from the addresses.
enum class CopyDirection : int { kHostToDevice, kDeviceToHost, kDeviceToDevice };

// What a device and its driver are. Versions are 1000 * major + 10 * minor; 0 without a driver.
struct DeviceFacts {
  int driver_version, runtime_version;
  int is_profiled;  // a profiler is loaded into this process
  int is_shared;    // contexts of several processes run on the device together
  // Who computes matrix products, and if not the vendor's library, why; a static text.
  const char* products;
};

// Memory of the device that was not asked for through this table, beside the total.
struct MemoryCensus {
  uint64_t device_used_bytes;                       // of every process
  uint64_t graph_used_bytes, graph_reserved_bytes;  // by nodes of graphs that allocate
  uint64_t pool_used_bytes, pool_reserved_bytes;    // by allocations in stream order
};

// What a graph consists of.
struct GraphNodes {
  uint64_t kernels, copies, allocations, others;
};

struct BackendApi {
  uint32_t api_version;  // first, for ever: a reader of another version looks no further
  const char* name;
  int is_host_memory;         // the host can address device memory
  int has_graphs;             // else the five functions of graphs are null
  uint32_t precisions;        // that programs run with: precision_bit of each
  int has_one_submit_thread;  // who submits first to any stream submits everything

  int (*open)(void** device);
  void (*close)(void* device);
  // The first error of the device; of a null device: why it could not be opened.
  void (*last_error)(void* device, BackendError* error);
  // Whoever calls has dealt with the device's first error: the next failure is the first again.
  void (*forget_error)(void* device);
  int (*device_facts)(void* device, DeviceFacts* facts);

  // Zeroed; device memory is aligned to 256 bytes, pinned host memory to 64.
  int (*allocate_device)(void* device, uint64_t bytes, void** memory);
  void (*free_device)(void* device, void* memory);
  int (*allocate_host)(void* device, uint64_t bytes, void** memory);
  void (*free_host)(void* device, void* memory);
  int (*memory_free_bytes)(void* device, uint64_t* bytes);
  int (*memory_census)(void* device, MemoryCensus* census);

  int (*create_stream)(void* device, void** stream);
  void (*destroy_stream)(void* device, void* stream);
  int (*copy_async)(void* stream, CopyDirection direction, void* to, const void* from,
                    uint64_t bytes);
  int (*copy_2d_async)(void* stream, CopyDirection direction, void* to, uint64_t to_pitch_bytes,
                       const void* from, uint64_t from_pitch_bytes, uint64_t row_bytes,
                       uint64_t rows);
  int (*gather_async)(void* stream, const Gather* gather);
  int (*update_async)(void* stream, const UpdateLaunch* launch);
  // What a launch of the program needs as scratch, whatever its precision.
  uint64_t (*program_scratch_bytes)(const Program* program);
  int (*program_async)(void* stream, const ProgramLaunch* launch);

  int (*create_event)(void* device, int is_timed, void** event);
  void (*destroy_event)(void* device, void* event);
  int (*record_event)(void* stream, void* event);
  int (*query_event)(void* event, int* is_complete);
  int (*wait_event)(void* event);  // blocks the calling thread
  // Later work of the stream starts once the event, of any stream of the device, is complete.
  int (*stream_wait_event)(void* stream, void* event);
  // Device time between two timed events that are complete; recorded on streams of one device.
  int (*elapsed_ns)(void* begin, void* end, double* ns);

  // Between begin and end the work that the calling thread submits to the stream is recorded, not
  // run. A capture that broke a rule says so by capture_status (is_valid 0) and by end_capture,
  // which always ends it, whatever it returns.
  int (*begin_capture)(void* stream);
  int (*capture_status)(void* stream, int* is_valid);
  int (*end_capture)(void* stream, void** graph, GraphNodes* nodes);
  int (*launch_graph)(void* stream, void* graph);
  void (*destroy_graph)(void* device, void* graph);
};

// What a plug-in exports under kBackendEntryName: its table, and then `text` says what the device
// is; or null, and then `text` says why there is none.
using BackendEntry = const BackendApi*(char* text, uint64_t text_bytes);
constexpr const char* kBackendEntryName = "millrace_backend";

struct BackendInfo {
  std::string name;
  bool available;
  std::string reason;  // empty when available
  std::string device;  // what a plug-in says it is
  // The best that this backend was shown to compute right on: "device", "paravirtual" (a virtual
  // machine's view of one), "host" (its code on the CPU, over a fake device) or "stub" (compiled).
  std::string verified;
};

// Every backend that this product knows, with the reason why one cannot be had.
std::vector<BackendInfo> backends();
// Throws kUnavailable with that reason, or kInvalid for an unknown name.
const BackendApi& backend_api(const std::string& name);
const BackendApi& backend_cpu();

// An open device. Failures of the table become Failure(kDevice) or, for memory, kResource.
class Backend {
 public:
  explicit Backend(const BackendApi& api);
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const char* name() const { return api_.name; }
  const BackendApi& api() const { return api_; }
  void* device() const { return device_; }
  bool is_host_memory() const { return api_.is_host_memory != 0; }
  bool has_one_submit_thread() const { return api_.has_one_submit_thread != 0; }
  uint64_t memory_free_bytes();
  DeviceFacts facts() const;
  MemoryCensus memory_census();
  // Counts the blocks of memory of this device that Memory allocated, tried to or freed; the site
  // is the last one's. A graph holds addresses: whoever replays one compares.
  uint64_t memory_epoch() const { return memory_epoch_.load(std::memory_order_acquire); }
  std::string memory_site() const;
  void forget_error() { api_.forget_error(device_); }
  // Throws a Failure with last_error() when result is not 0.
  void check(int result, const char* what, Code code = Code::kDevice) const;

 private:
  friend class Memory;
  void memory_changed(const char* file, int line);

  const BackendApi& api_;
  void* device_ = nullptr;
  std::atomic<uint64_t> memory_epoch_{0};
  mutable std::mutex memory_mutex_;
  std::string memory_site_ = "none";
};

// Memory of one backend, freed with the object.
class Memory {
 public:
  enum class Kind { kDevice, kPinnedHost };
  Memory(Backend& backend, Kind kind, uint64_t bytes, const char* file = __builtin_FILE(),
         int line = __builtin_LINE());
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  float* floats() const { return static_cast<float*>(memory_); }
  uint64_t bytes() const { return bytes_; }

 private:
  Backend& backend_;
  const Kind kind_;
  const uint64_t bytes_;
  const char* const file_;
  const int line_;
  void* memory_ = nullptr;
};

class Event {
 public:
  explicit Event(Backend& backend, bool is_timed = false);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  bool is_complete() const;
  void wait() const;
  // Device time since `begin`; both timed, recorded and complete.
  double elapsed_ns_since(const Event& begin) const;

 private:
  friend class Stream;
  Backend& backend_;
  void* event_ = nullptr;
};

class Stream;

// Recorded work of one stream, to be launched any number of times. Captures are made one at a time
// in a process, and each is a transaction: one that fails throws, naming the op that broke it, and
// leaves neither a graph nor an error behind. Throws kUnavailable on a backend without graphs.
class Graph {
 public:
  Graph(Backend& backend, Stream& stream, const std::function<void()>& body);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const GraphNodes& nodes() const { return nodes_; }

 private:
  friend class Stream;
  Backend& backend_;
  void* graph_ = nullptr;
  GraphNodes nodes_ = {};
};

// An in-order queue. The first thread that submits is its submit thread; another one that tries is
// refused with both named.
class Stream {
 public:
  explicit Stream(Backend& backend);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void copy_rows(CopyDirection direction, void* to, uint64_t to_pitch_bytes, const void* from,
                 uint64_t from_pitch_bytes, uint64_t row_bytes, uint64_t rows);
  void gather(const Gather& gather);
  void update(const UpdateLaunch& launch);
  void run(const ProgramLaunch& launch);
  void copy(CopyDirection direction, void* to, const void* from, uint64_t bytes);
  void record(Event& event);
  void wait(const Event& event);  // the stream waits, not the caller
  void launch(const Graph& graph);

 private:
  friend class Graph;
  void assert_submit_thread();
  // Of a submission: its failure, or that it broke the capture it belongs to.
  void submitted(int result, const char* what);

  Backend& backend_;
  void* stream_ = nullptr;
  std::atomic<std::thread::id> submit_thread_{};
  bool is_capturing_ = false;
};

}  // namespace millrace

#include "backend.h"

#include <cstring>
#include <sstream>

#include "backend_plugin.h"

namespace millrace {

namespace {

// Held from the first to the last call of a capture.
std::mutex& capture_lock() {
  static std::mutex lock;
  return lock;
}

// Asked once: what the driver says does not change while a process lives.
const BackendPlugin& cuda_plugin() {
  static const BackendPlugin plugin = open_backend_plugin("cuda", own_folder());
  return plugin;
}

const BackendPlugin& metal_plugin() {
#if defined(__APPLE__)
  static const BackendPlugin plugin = open_backend_plugin("metal", own_folder());
#else
  static const BackendPlugin plugin = {nullptr, "this is no Mac, and Metal is a part of macOS"};
#endif
  return plugin;
}

BackendInfo info_of(const char* name, const BackendPlugin& plugin, const char* verified) {
  const bool is_there = plugin.api != nullptr;
  return {name, is_there, is_there ? "" : plugin.text, is_there ? plugin.text : "", verified};
}

}  // namespace

// How far each was verified is a fact of this source: docs/metal.md says what raises Metal's.
std::vector<BackendInfo> backends() {
  return {{"cpu", true, "", "", "device"},
          info_of("cuda", cuda_plugin(), "device"),
          info_of("metal", metal_plugin(), "host")};
}

const BackendApi& backend_api(const std::string& name) {
  for (const BackendInfo& info : backends()) {
    if (info.name != name) continue;
    if (!info.available) {
      throw Failure(Code::kUnavailable, "device " + name + " is unavailable: " + info.reason);
    }
    if (name == "cpu") return backend_cpu();
    return *(name == "cuda" ? cuda_plugin() : metal_plugin()).api;
  }
  throw Failure(Code::kInvalid, "unknown device '" + name + "': use cpu, cuda or metal");
}

Backend::Backend(const BackendApi& api) : api_(api) {
  if (api.api_version != kBackendApiVersion) {
    throw Failure(Code::kUnavailable,
                  "backend speaks interface " + std::to_string(api.api_version) +
                      ", this library speaks " + std::to_string(kBackendApiVersion));
  }
  check(api.open(&device_), "opening the device", Code::kUnavailable);
}

Backend::~Backend() { api_.close(device_); }

uint64_t Backend::memory_free_bytes() {
  uint64_t bytes = 0;
  check(api_.memory_free_bytes(device_, &bytes), "asking for free memory");
  return bytes;
}

DeviceFacts Backend::facts() const {
  DeviceFacts facts{};
  check(api_.device_facts(device_, &facts), "asking what the device is");
  return facts;
}

MemoryCensus Backend::memory_census() {
  MemoryCensus census{};
  check(api_.memory_census(device_, &census), "asking for memory in use");
  return census;
}

std::string Backend::memory_site() const {
  std::lock_guard<std::mutex> lock(memory_mutex_);
  return memory_site_;
}

void Backend::memory_changed(const char* file, int line) {
  const char* name = std::strrchr(file, '/');
  std::lock_guard<std::mutex> lock(memory_mutex_);
  memory_site_ = std::string(name != nullptr ? name + 1 : file) + ":" + std::to_string(line);
  memory_epoch_.fetch_add(1, std::memory_order_acq_rel);
}

void Backend::check(int result, const char* what, Code code) const {
  if (result == 0) return;
  BackendError error{"", "", 0, ""};
  api_.last_error(device_, &error);
  throw Failure(code, std::string(what) + " failed on " + api_.name + ": " + error.operation +
                          " at " + error.site + ": " + std::to_string(error.code) + " " +
                          error.meaning);
}

Memory::Memory(Backend& backend, Kind kind, uint64_t bytes, const char* file, int line)
    : backend_(backend), kind_(kind), bytes_(bytes), file_(file), line_(line) {
  const BackendApi& api = backend.api();
  backend.memory_changed(file, line);  // before it can fail: who tried is asked for, too
  if (kind == Kind::kDevice) {
    backend.check(api.allocate_device(backend.device(), bytes, &memory_),
                  "allocating device memory", Code::kResource);
  } else {
    backend.check(api.allocate_host(backend.device(), bytes, &memory_),
                  "allocating pinned host memory", Code::kResource);
  }
}

Memory::~Memory() {
  const BackendApi& api = backend_.api();
  (kind_ == Kind::kDevice ? api.free_device : api.free_host)(backend_.device(), memory_);
  backend_.memory_changed(file_, line_);
}

Event::Event(Backend& backend, bool is_timed) : backend_(backend) {
  backend.check(backend.api().create_event(backend.device(), is_timed ? 1 : 0, &event_),
                "creating an event");
}

Event::~Event() { backend_.api().destroy_event(backend_.device(), event_); }

bool Event::is_complete() const {
  int is_complete = 0;
  backend_.check(backend_.api().query_event(event_, &is_complete), "querying an event");
  return is_complete != 0;
}

void Event::wait() const {
  backend_.check(backend_.api().wait_event(event_), "waiting for an event");
}

double Event::elapsed_ns_since(const Event& begin) const {
  double ns = 0;
  backend_.check(backend_.api().elapsed_ns(begin.event_, event_, &ns), "timing events");
  return ns;
}

Graph::Graph(Backend& backend, Stream& stream, const std::function<void()>& body)
    : backend_(backend) {
  const BackendApi& api = backend.api();
  if (api.has_graphs == 0) {
    throw Failure(Code::kUnavailable, std::string("the ") + api.name + " backend has no graphs");
  }
  stream.assert_submit_thread();
  std::lock_guard<std::mutex> lock(capture_lock());
  try {
    backend.check(api.begin_capture(stream.stream_), "beginning a capture");
    stream.is_capturing_ = true;
    try {
      body();
    } catch (...) {
      // The stream leaves capture mode whatever happened; the body's error is the one that counts.
      stream.is_capturing_ = false;
      if (api.end_capture(stream.stream_, &graph_, &nodes_) == 0) {
        api.destroy_graph(backend.device(), graph_);
      }
      throw;
    }
    stream.is_capturing_ = false;
    backend.check(api.end_capture(stream.stream_, &graph_, &nodes_), "ending a capture");
  } catch (...) {
    api.forget_error(backend.device());
    throw;
  }
}

Graph::~Graph() { backend_.api().destroy_graph(backend_.device(), graph_); }

Stream::Stream(Backend& backend) : backend_(backend) {
  backend.check(backend.api().create_stream(backend.device(), &stream_), "creating a stream");
}

Stream::~Stream() { backend_.api().destroy_stream(backend_.device(), stream_); }

void Stream::assert_submit_thread() {
  const std::thread::id self = std::this_thread::get_id();
  std::thread::id owner{};
  if (submit_thread_.compare_exchange_strong(owner, self) || owner == self) return;
  std::ostringstream message;
  message << "thread " << self << " submitted to a stream whose submit thread is " << owner;
  throw Failure(Code::kBug, message.str());
}

void Stream::submitted(int result, const char* what) {
  backend_.check(result, what);
  if (!is_capturing_) return;
  int is_valid = 0;
  backend_.check(backend_.api().capture_status(stream_, &is_valid), "asking for a capture's state");
  if (is_valid != 0) return;
  throw Failure(Code::kDevice, std::string(what) + " broke the capture it was part of");
}

void Stream::copy_rows(CopyDirection direction, void* to, uint64_t to_pitch_bytes, const void* from,
                       uint64_t from_pitch_bytes, uint64_t row_bytes, uint64_t rows) {
  assert_submit_thread();
  submitted(backend_.api().copy_2d_async(stream_, direction, to, to_pitch_bytes, from,
                                         from_pitch_bytes, row_bytes, rows),
            "copying rows");
}

void Stream::gather(const Gather& gather) {
  assert_submit_thread();
  submitted(backend_.api().gather_async(stream_, &gather), "gathering rows");
}

void Stream::update(const UpdateLaunch& launch) {
  assert_submit_thread();
  submitted(backend_.api().update_async(stream_, &launch), "updating the environments");
}

void Stream::run(const ProgramLaunch& launch) {
  assert_submit_thread();
  submitted(backend_.api().program_async(stream_, &launch), "running a program");
}

void Stream::copy(CopyDirection direction, void* to, const void* from, uint64_t bytes) {
  assert_submit_thread();
  submitted(backend_.api().copy_async(stream_, direction, to, from, bytes), "copying");
}

void Stream::launch(const Graph& graph) {
  assert_submit_thread();
  backend_.check(backend_.api().launch_graph(stream_, graph.graph_), "launching a graph");
}

void Stream::record(Event& event) {
  assert_submit_thread();
  submitted(backend_.api().record_event(stream_, event.event_), "recording an event");
}

void Stream::wait(const Event& event) {
  assert_submit_thread();
  submitted(backend_.api().stream_wait_event(stream_, event.event_), "waiting for another stream");
}

}  // namespace millrace

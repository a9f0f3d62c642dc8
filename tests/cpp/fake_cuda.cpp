#include "fake_cuda.h"

#include <algorithm>
#include <utility>

#include "philox.h"
#include "update_launch.h"

namespace millrace {

namespace {

enum CudaCode : int {
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kIllegalAddress = 700,
  kLaunchFailure = 719,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureMerge = 902,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
  kUnknown = 999,
};

const char* meaning_of(int code) {
  switch (code) {
    case kInvalidValue:
      return "invalid argument";
    case kOutOfMemory:
      return "out of memory";
    case kInvalidHandle:
      return "invalid resource handle";
    case kIllegalState:
      return "the operation cannot be performed in the present state";
    case kIllegalAddress:
      return "an illegal memory access was encountered";
    case kLaunchFailure:
      return "unspecified launch failure";
    case kCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case kCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case kCaptureMerge:
      return "operation would result in a merge of separate capture sequences";
    case kCaptureUnmatched:
      return "capture was not ended in the same stream as it began";
    case kCaptureUnjoined:
      return "capturing stream has unjoined work";
    case kCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case kCaptureImplicit:
      return "operation would make the legacy stream depend on a capturing blocking stream";
    case kCapturedEvent:
      return "operation not permitted on an event last recorded in a capturing stream";
    case kCaptureWrongThread:
      return "attempt to terminate a thread-local capture sequence from another thread";
  }
  return "unknown error";
}

using Lock = FakeCuda::Lock;

struct Violations {
  std::mutex mutex;
  std::vector<std::string> texts;
};

Violations& violations() {
  static Violations all;
  return all;
}

// Bytes from the first to behind the last component of a field.
uint64_t extent_of(const FieldView& field, int num_envs) {
  const auto last =
      static_cast<uint64_t>(num_envs - 1) * static_cast<uint64_t>(field.env_stride) +
      static_cast<uint64_t>(field.dim - 1) * static_cast<uint64_t>(field.component_stride);
  return (last + 1) * sizeof(float);
}

}  // namespace

// ---- what tests ask of it ----

void FakeCuda::violation(const std::string& text) {
  std::lock_guard<std::mutex> lock(violations().mutex);
  violations().texts.push_back(text);
}

std::vector<std::string> FakeCuda::take_violations() {
  std::lock_guard<std::mutex> lock(violations().mutex);
  return std::exchange(violations().texts, {});
}

void FakeCuda::order_by(uint64_t seed) {
  Lock lock(mutex_);
  seed_ = seed;
  choices_ = 0;
}

void FakeCuda::fail(const std::string& function, uint64_t at, int code) {
  Lock lock(mutex_);
  triggers_.push_back({function, calls_[function] + at, code, nullptr});
}

void FakeCuda::when(const std::string& function, uint64_t at, std::function<void()> action) {
  Lock lock(mutex_);
  triggers_.push_back({function, calls_[function] + at, 0, std::move(action)});
}

bool FakeCuda::all_struck() const {
  Lock lock(mutex_);
  return triggers_.empty();
}

void FakeCuda::capture_allocation() {
  Lock lock(mutex_);
  for (const auto& capture : captures_) ++capture->nodes.allocations;
}

size_t FakeCuda::pending() const {
  Lock lock(mutex_);
  size_t count = 0;
  for (const auto& stream : streams_) count += stream->queue.size();
  return count;
}

int FakeCuda::most_captures_at_once() const {
  Lock lock(mutex_);
  return most_captures_;
}

// ---- errors ----

// Counts a call; the code that a test wants of it, or 0.
int FakeCuda::strike(const char* function) {
  std::function<void()> action;
  int code = 0;
  {
    Lock lock(mutex_);
    const uint64_t call = calls_[function]++;
    const auto found = std::find_if(triggers_.begin(), triggers_.end(), [&](const Trigger& each) {
      return each.function == function && each.at == call;
    });
    if (found == triggers_.end()) return 0;
    action = std::move(found->action);
    code = found->code;
    triggers_.erase(found);
  }
  if (action) action();
  return code;
}

int FakeCuda::fail_with(const char* function, int code) {
  Lock lock(mutex_);
  if (first_error_.code == 0) first_error_ = {function, "fake_cuda.cpp", code, meaning_of(code)};
  return code;
}

// What comes before everything else in a call: faults, a sticky error, and what must not be called
// by a thread that captures.
int FakeCuda::check(const char* function, bool is_safe_in_capture) {
  if (const int code = strike(function)) return fail_with(function, code);
  Lock lock(mutex_);
  if (sticky_code_ != 0) return fail_with(function, sticky_code_);
  Capture* capture = is_safe_in_capture ? nullptr : capture_of_this_thread();
  if (capture == nullptr) return 0;
  return break_capture(function, *capture, kCaptureUnsupported);
}

bool FakeCuda::is_open(const std::shared_ptr<Capture>& capture) const {
  return std::find(captures_.begin(), captures_.end(), capture) != captures_.end();
}

FakeCuda::Capture* FakeCuda::capture_of_this_thread() {
  for (const auto& capture : captures_) {
    if (capture->thread == std::this_thread::get_id()) return capture.get();
  }
  return nullptr;
}

int FakeCuda::break_capture(const char* function, Capture& capture, int code) {
  capture.is_valid = false;
  return fail_with(function, code);
}

// ---- streams ----

// Takes an op into the stream's queue or into the capture that the stream is part of.
int FakeCuda::submit(Stream& stream, const char* function, uint64_t GraphNodes::*kind, Op op) {
  const int code = check(function, true);
  Lock lock(mutex_);
  Capture* capture = stream.capture.get();
  if (code != 0) {
    if (capture != nullptr) capture->is_valid = false;
    return code;
  }
  if (capture == nullptr) {
    stream.queue.push_back({[] { return true; }, [this, op] { return run_op(op, false); }});
    run_early();
    return 0;
  }
  if (!capture->is_valid) return fail_with(function, kCaptureInvalidated);
  capture->ops.push_back(std::move(op));
  ++(capture->nodes.*kind);
  ++stream.captured_ops;
  if (&stream != capture->origin) capture->unjoined.insert(&stream);
  return 0;
}

int FakeCuda::run_op(const Op& op, bool is_replay) {
  ++ops_run_;
  if (const int code = strike("run")) return code;
  return op(is_replay);
}

uint64_t FakeCuda::random() {
  const RandomSource source = random_source(seed_, kStreamExploration, 0, choices_++);
  return random_u32(source, 0);
}

void FakeCuda::run_early() {
  if (seed_ == 0) return;
  FakeCudaMemory::Window window(device_memory_);
  for (uint64_t pieces = random() % 4; pieces > 1 && run_one(); --pieces) {
  }
}

// Runs one piece of work of one stream that has some; false if none can run.
bool FakeCuda::run_one() {
  std::vector<Stream*> ready;
  for (const auto& stream : streams_) {
    if (!stream->queue.empty() && stream->queue.front().is_ready()) ready.push_back(stream.get());
  }
  if (ready.empty()) return false;
  Stream& stream = *ready[seed_ == 0 ? 0 : random() % ready.size()];
  const Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (sticky_code_ == 0) sticky_code_ = work.run();
  if (sticky_code_ != 0) fail_with("run", sticky_code_);
  return true;
}

// ---- which memory work may use ----

int FakeCuda::use_device(const void* at, uint64_t bytes, const char* what) {
  const std::string wrong = device_memory_.use(at, bytes);
  if (wrong.empty()) return 0;
  violation(std::string(what) + " used " + wrong);
  return kIllegalAddress;
}

int FakeCuda::use_host(const void* at, const char* what) {
  std::string wrong;
  if (device_memory_.owns(at)) wrong = "device memory as the host's";
  if (host_memory_.owns(at)) wrong = host_memory_.use(at, 1);
  if (wrong.empty()) return 0;
  violation(std::string(what) + " used " + wrong);
  return kIllegalAddress;
}

int FakeCuda::use_copy(CopyDirection direction, const void* to, uint64_t to_bytes, const void* from,
                       uint64_t from_bytes) {
  const int to_code = direction == CopyDirection::kDeviceToHost
                          ? use_host(to, "a copy")
                          : use_device(to, to_bytes, "a copy");
  if (to_code != 0) return to_code;
  return direction == CopyDirection::kHostToDevice ? use_host(from, "a copy")
                                                   : use_device(from, from_bytes, "a copy");
}

int FakeCuda::use_launch(const UpdateLaunch& launch) {
  const auto envs = static_cast<uint64_t>(launch.num_envs);
  int code = use_device(launch.params, sizeof(*launch.params), "the update step (parameters)");
  const auto use = [&](const void* at, uint64_t bytes, const char* what) {
    if (code == 0 && at != nullptr) code = use_device(at, bytes, what);
  };
  use(launch.block, sizeof(*launch.block), "the update step (block)");
  if (code != 0) return code;
  use(launch.block->rows, (envs - 1) * launch.block->row_floats * sizeof(float),
      "the update step (rows)");
  use(launch.outcomes, envs * sizeof(*launch.outcomes), "the update step (outcomes)");
  use(launch.echo, sizeof(*launch.echo), "the update step (echo)");
  for (const FieldView& field : launch.state.sim) {
    use(field.data, extent_of(field, launch.num_envs), "the update step (sim field)");
  }
  for (const FieldView& field : launch.state.episode) {
    use(field.data, extent_of(field, launch.num_envs), "the update step (episode field)");
  }
  for (const CounterView& counter : launch.state.counter) {
    const auto last = (envs - 1) * static_cast<uint64_t>(counter.env_stride);
    use(counter.data, (last + 1) * sizeof(int), "the update step (counter)");
  }
  const MotionView& motion = launch.state.motion;
  use(motion.clip_end, static_cast<uint64_t>(motion.frames) * sizeof(int),
      "the update step (motion)");
  return code;
}

// ---- events ----

int FakeCuda::record(Stream& stream, const std::shared_ptr<Event>& event) {
  const int code = check("record_event", true);
  Lock lock(mutex_);
  if (code != 0) {
    if (stream.capture) stream.capture->is_valid = false;
    return code;
  }
  event->capture = stream.capture;
  if (stream.capture) {
    if (!stream.capture->is_valid) return fail_with("record_event", kCaptureInvalidated);
    event->capture_stream = &stream;
    event->captured_ops = stream.captured_ops;
    return 0;
  }
  const uint64_t number = ++event->recorded;
  stream.queue.push_back({[] { return true; },
                          [this, event, number] {
                            event->completed = number;
                            event->completed_ns = 1000.0 * static_cast<double>(ops_run_);
                            return 0;
                          }});
  run_early();
  return 0;
}

int FakeCuda::stream_wait(Stream& stream, const std::shared_ptr<Event>& event) {
  const int code = check("stream_wait_event", true);
  Lock lock(mutex_);
  if (code != 0) {
    if (stream.capture) stream.capture->is_valid = false;
    return code;
  }
  if (event->capture) return join(stream, *event);
  if (stream.capture) return break_capture("stream_wait_event", *stream.capture, kCaptureIsolation);
  const uint64_t number = event->recorded;
  stream.queue.push_back(
      {[event, number] { return event->completed >= number; }, [] { return 0; }});
  run_early();
  return 0;
}

// A stream waits for an event of a capture: it forks off it or joins it again.
int FakeCuda::join(Stream& stream, Event& event) {
  const char* function = "stream_wait_event";
  if (!is_open(event.capture)) return fail_with(function, kCapturedEvent);
  if (!stream.capture) {
    stream.capture = event.capture;
    stream.capture->members.insert(&stream);
    return 0;
  }
  if (stream.capture != event.capture) {
    event.capture->is_valid = false;
    return break_capture(function, *stream.capture, kCaptureMerge);
  }
  if (!stream.capture->is_valid) return fail_with(function, kCaptureInvalidated);
  if (event.captured_ops == event.capture_stream->captured_ops) {
    stream.capture->unjoined.erase(event.capture_stream);
  }
  return 0;
}

// What query and wait have in common: neither may be asked of an event of a capture, nor by a
// thread that captures.
int FakeCuda::ask(Event& event, const char* function) {
  if (const int code = check(function, false)) return code;
  Lock lock(mutex_);
  if (!event.capture) return 0;
  event.capture->is_valid = false;
  return fail_with(function, kCapturedEvent);
}

int FakeCuda::query(Event& event, int* is_complete) {
  *is_complete = 0;
  if (const int code = ask(event, "query_event")) return code;
  Lock lock(mutex_);
  if (event.completed < event.recorded) {  // who asks again and again gets somewhere
    FakeCudaMemory::Window window(device_memory_);
    run_one();
  }
  *is_complete = event.recorded > 0 && event.completed == event.recorded;
  return sticky_code_;
}

int FakeCuda::wait(Event& event) {
  if (const int code = ask(event, "wait_event")) return code;
  Lock lock(mutex_);
  if (event.completed == event.recorded) return 0;
  FakeCudaMemory::Window window(device_memory_);
  while (event.completed < event.recorded && sticky_code_ == 0) {
    if (run_one()) continue;
    violation("an event is waited for that no work will complete");
    return fail_with("wait_event", kUnknown);
  }
  return sticky_code_;
}

// ---- captures and graphs ----

int FakeCuda::begin_capture(Stream& stream) {
  if (const int code = check("begin_capture", true)) return code;
  Lock lock(mutex_);
  if (stream.capture) return fail_with("begin_capture", kIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->thread = std::this_thread::get_id();
  capture->origin = &stream;
  capture->members.insert(&stream);
  stream.capture = capture;
  captures_.push_back(capture);
  most_captures_ = std::max(most_captures_, static_cast<int>(captures_.size()));
  return 0;
}

void FakeCuda::detach(Capture& capture) {
  const auto found = std::find_if(captures_.begin(), captures_.end(),
                                  [&](const auto& each) { return each.get() == &capture; });
  const std::shared_ptr<Capture> alive = *found;
  captures_.erase(found);
  for (Stream* member : capture.members) member->capture = nullptr;
}

int FakeCuda::end_capture(Stream& stream, void** graph, GraphNodes* nodes) {
  int code = check("end_capture", true);
  Lock lock(mutex_);
  const std::shared_ptr<Capture> capture = stream.capture;
  if (!capture) return fail_with("end_capture", code != 0 ? code : kIllegalState);
  if (code == 0 && &stream != capture->origin) {
    return break_capture("end_capture", *capture, kCaptureUnmatched);
  }
  if (code == 0 && capture->thread != std::this_thread::get_id()) {
    return break_capture("end_capture", *capture, kCaptureWrongThread);
  }
  detach(*capture);
  if (code == 0 && !capture->is_valid) code = kCaptureInvalidated;
  if (code == 0 && !capture->unjoined.empty()) code = kCaptureUnjoined;
  if (code != 0) return fail_with("end_capture", code);
  if (const int fault = strike("instantiate")) return fail_with("instantiate", fault);
  auto made = std::make_shared<Graph>();
  made->ops = std::move(capture->ops);
  *nodes = capture->nodes;
  *graph = made.get();
  graphs_[made.get()] = made;
  return 0;
}

int FakeCuda::launch(Stream& stream, void* handle) {
  if (const int code = check("launch_graph", true)) return code;
  Lock lock(mutex_);
  if (stream.capture) return break_capture("launch_graph", *stream.capture, kCaptureUnsupported);
  const auto found = graphs_.find(handle);
  if (found == graphs_.end()) {
    violation("a graph was launched that does not exist any more");
    return fail_with("launch_graph", kInvalidHandle);
  }
  const std::shared_ptr<Graph> graph = found->second;
  const uint64_t number = graph->launched++;
  const auto run = [this, graph] {
    int code = 0;
    for (const Op& op : graph->ops) code = code == 0 ? run_op(op, true) : code;
    ++graph->finished;
    return code;
  };
  stream.queue.push_back({[graph, number] { return graph->finished == number; }, run});
  run_early();
  return 0;
}

void FakeCuda::destroy(void* handle) {
  if (check("destroy_graph", false) != 0) return;
  Lock lock(mutex_);
  const auto found = graphs_.find(handle);
  if (found == graphs_.end()) return violation("a graph was destroyed that does not exist");
  const Graph& graph = *found->second;
  if (graph.finished < graph.launched) {
    violation("a graph was destroyed while " + std::to_string(graph.launched - graph.finished) +
              " launches of it are pending");
  }
  graphs_.erase(found);
}

}  // namespace millrace

// fake_cuda: a CUDA device and its driver as backend.h sees them, without a GPU, for tests of who
// may do what and when. Ops are carried out by backend_cpu()'s functions; around them:
//
//   late work    Streams are in-order queues. Work runs when an event is waited for, and some of it
//                before, in an order between streams that a seed decides. Sources are read when the
//                work runs: what was overwritten too early is seen.
//   memory       A host that touches device memory crashes. Blocks have guards; freed ones are
//                never reused, hold poison, and work that uses one is reported.
//   captures     Thread-local, with CUDA's rules, codes and meanings (900 to 908). There is no
//                legacy stream in the table, so nothing but an injected fault gives 906.
//   graphs       Launches read device memory when they run; those of one graph never run side by
//                side. To destroy a graph that is still to run is reported.
//   errors       The first one is kept until it is forgotten. One of work that runs is sticky, as
//                CUDA's are: every later call fails with its code.
//
// What no driver would tell but is wrong all the same (a broken guard, a use of freed memory) is a
// violation: tests end with EXPECT_EQ(FakeCuda::take_violations(), none). Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backend.h"
#include "fake_cuda_memory.h"

namespace millrace {

const BackendApi& fake_cuda();

class FakeCuda {
 public:
  using Lock = std::lock_guard<std::recursive_mutex>;
  using Kernel = int (*)(void* stream, const UpdateLaunch* launch);

  static FakeCuda& of(const Backend& backend) { return *static_cast<FakeCuda*>(backend.device()); }
  // What was wrong since the last call, on any device of this kind.
  static std::vector<std::string> take_violations();

  // Without it work runs as late as it can, streams in the order of their creation.
  void order_by(uint64_t seed);

  // At call number `at`, from 0 and from now on, of a function of the table; of "instantiate",
  // the second half of end_capture; or of "run", an op that runs. The action comes first and may
  // call the table, unless it is one of "run".
  void fail(const std::string& function, uint64_t at, int code);
  void when(const std::string& function, uint64_t at, std::function<void()> action);
  bool all_struck() const;  // nothing that was asked for by the two is still to come

  // What the driver holds beside the blocks of the table; a test lets it grow.
  MemoryCensus& driver_memory() { return driver_memory_; }
  // In a capture: the node of an allocation in stream order.
  void capture_allocation();
  // The update step as graphs run it from now on; eager launches stay as they are.
  void replay_with(Kernel kernel) { replay_kernel_ = kernel; }

  size_t pending() const;  // ops, records and launches that have not run
  int most_captures_at_once() const;

 private:
  friend struct FakeCudaTable;
  using Op = std::function<int(bool is_replay)>;  // 0 or the code of an error

  struct Stream;
  struct Capture {
    std::thread::id thread;
    Stream* origin;
    bool is_valid = true;
    std::set<Stream*> members, unjoined;
    std::vector<Op> ops;
    GraphNodes nodes = {};
  };
  struct Work {
    std::function<bool()> is_ready;
    std::function<int()> run;
  };
  struct Stream {
    FakeCuda& device;
    std::deque<Work> queue = {};
    std::shared_ptr<Capture> capture = nullptr;
    uint64_t captured_ops = 0;
  };
  struct Event {
    FakeCuda& device;
    uint64_t recorded = 0, completed = 0;
    double completed_ns = 0;
    std::shared_ptr<Capture> capture = nullptr;  // it was last recorded in
    Stream* capture_stream = nullptr;
    uint64_t captured_ops = 0;  // of that stream before it
  };
  struct Graph {
    std::vector<Op> ops;
    uint64_t launched = 0, finished = 0;
  };
  struct Trigger {
    std::string function;
    uint64_t at;
    int code;
    std::function<void()> action;
  };

  static void violation(const std::string& text);
  int strike(const char* function);
  int fail_with(const char* function, int code);
  int check(const char* function, bool is_safe_in_capture);
  bool is_open(const std::shared_ptr<Capture>& capture) const;
  Capture* capture_of_this_thread();
  int break_capture(const char* function, Capture& capture, int code);

  int submit(Stream& stream, const char* function, uint64_t GraphNodes::*kind, Op op);
  int run_op(const Op& op, bool is_replay);
  void run_early();
  bool run_one();
  uint64_t random();

  int use_device(const void* at, uint64_t bytes, const char* what);
  int use_host(const void* at, const char* what);
  int use_copy(CopyDirection direction, const void* to, uint64_t to_bytes, const void* from,
               uint64_t from_bytes);
  int use_launch(const UpdateLaunch& launch);

  int record(Stream& stream, const std::shared_ptr<Event>& event);
  int stream_wait(Stream& stream, const std::shared_ptr<Event>& event);
  int join(Stream& stream, Event& event);
  int ask(Event& event, const char* function);
  int query(Event& event, int* is_complete);
  int wait(Event& event);

  int begin_capture(Stream& stream);
  int end_capture(Stream& stream, void** graph, GraphNodes* nodes);
  void detach(Capture& capture);
  int launch(Stream& stream, void* graph);
  void destroy(void* graph);

  mutable std::recursive_mutex mutex_;  // guards all that follows
  FakeCudaMemory device_memory_{"device memory", true};
  FakeCudaMemory host_memory_{"pinned host memory", false};
  MemoryCensus driver_memory_ = {};
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::shared_ptr<Capture>> captures_;  // open
  std::map<void*, std::shared_ptr<Graph>> graphs_;
  std::map<std::string, uint64_t> calls_;
  std::vector<Trigger> triggers_;
  BackendError first_error_ = {"none", "fake_cuda.cpp", 0, "no error"};
  int sticky_code_ = 0;
  uint64_t seed_ = 0, choices_ = 0, ops_run_ = 0;
  int most_captures_ = 0;
  Kernel replay_kernel_ = nullptr;
};

}  // namespace millrace

// CapturedProgram: one program of a device and how it is launched: eagerly, or as a graph that was
// recorded once and is replayed.
//
//   DISABLED(reason)       graph: off, or what preflight has found against it
//   ELIGIBLE -> WARM -> CAPTURED -> REPLAYING
//          any of these -> INVALID(reason)
//
// run() always does the work of one run, whatever the state. Two eager runs come first: they load
// what is loaded lazily. A capture that fails leaves no trace and that run is made eagerly; after
// three failures the program is INVALID. Before every replay one number is compared, which says
// whether any memory of the device was allocated or freed, and now and then the allocator proof
// looks at the driver's counters. INVALID is final: the program goes on eagerly and says why; with
// graph: on that ends the run instead, since a graph was what it asked for.
//
// The body submits to the stream and must be the same each time: what varies stands in argument
// blocks. Threads: run(), completed() and release() on the submit thread; invalidate(), state() and
// describe() on any. Graphs are destroyed by release() alone, behind the work that uses them: who
// closes a run from elsewhere only ends the submit thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "allocator_proof.h"
#include "backend.h"

namespace millrace {

enum class GraphPolicy { kOff, kAuto, kOn };
// Throws kInvalid for another word than off, auto and on.
GraphPolicy graph_policy(const std::string& text);
const char* to_string(GraphPolicy policy);

enum class GraphState { kDisabled, kEligible, kWarm, kCaptured, kReplaying, kInvalid };
const char* to_string(GraphState state);

struct GraphSpec {
  std::string program;  // "update"
  GraphPolicy policy = GraphPolicy::kAuto;
  std::string obstacle;  // what preflight has against a graph; empty: nothing
};

class CapturedProgram {
 public:
  static constexpr int kWarmRuns = 2;
  static constexpr int kCapturesTried = 3;

  CapturedProgram(Backend& backend, Stream& stream, GraphSpec spec, std::function<void()> body);
  CapturedProgram(const CapturedProgram&) = delete;
  CapturedProgram& operator=(const CapturedProgram&) = delete;

  // Enqueues one run.
  void run();
  // The last run was observed complete.
  void completed();
  // For measuring one against the other (selected_program.h): a run in one of the two ways, which
  // counts as none. False, and nothing was enqueued: there is no graph that could be replayed.
  void try_eagerly() { body_(); }
  bool try_graph();
  // run() launches eagerly from now on and says why; and takes that back. Neither does anything to
  // a program that is DISABLED or INVALID for another reason.
  void set_graph_aside(const std::string& reason);
  void take_graph_up();
  // Waits for the stream and destroys the graph; the program ends here.
  void release();

  // An address, a parameter or a module that the graph holds has changed: no replay from now on.
  void invalidate(const std::string& reason);

  const std::string& name() const { return spec_.program; }
  GraphState state() const;
  std::string reason() const;
  uint64_t replays() const;
  // {identity, requested, effective, state, reason, nodes, captures, failed_captures, capture_ms,
  // replays, eager_runs, coverage, alloc_proof, history}. coverage = replays / runs since the warm
  // ones.
  nlohmann::json describe() const;

 private:
  struct Change {
    GraphState state;
    uint64_t run;
    std::string reason;
  };

  void capture();
  void replay();
  void run_eagerly();
  void enter(GraphState state, std::string reason);
  void end(const std::string& reason);
  std::optional<std::string> obstacle_to_graph();
  bool is_proof_due() const;
  uint64_t runs() const { return replays_ + eager_runs_; }

  Backend& backend_;
  Stream& stream_;
  const GraphSpec spec_;
  const std::function<void()> body_;

  // Of its own: a body that changes an address says so while run() holds the other one.
  std::mutex invalidation_mutex_;
  std::string invalidation_;  // the first reason

  mutable std::mutex mutex_;  // guards what follows
  GraphState state_;
  std::string reason_;
  std::vector<Change> history_;
  uint64_t eager_runs_ = 0, replays_ = 0, captures_ = 0, failed_captures_ = 0;
  double capture_ms_ = 0;
  GraphNodes nodes_ = {};

  std::unique_ptr<Graph> graph_;
  AllocatorProof proof_;
  bool is_proving_ = false;  // between run() and completed()
  bool is_set_aside_ = false;
};

}  // namespace millrace

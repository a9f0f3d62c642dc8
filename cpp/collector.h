// Collector: the thread that runs ticks. One tick is
//   act (policy snapshot) -> push -> step -> update, in chunks or on a device -> publish -> reset
// (rows are packed from the pre-reset observations, so they are complete before the reset)
// and every part is done by the owner that the reference names; the collector only keeps the order.
//
// The learner thread releases ticks: the collector runs tick t while t < released. A synchronous
// run releases one and waits for it at the boundary; an asynchronous one releases up to
// max_lead_ticks ahead. A snapshot published before tick t is released is the one that t acts with,
// so a synchronous run depends on nothing but its seed.
//
// Threads: the constructor's thread (the learner's) makes every call. The collector thread writes
// the first error and wakes the waiter; wait_finished() rethrows it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "acting_policy.h"
#include "noise_repetition.h"
#include "phase_times.h"
#include "replay.h"
#include "reward_scale.h"
#include "sim_backend.h"
#include "submitted_update.h"
#include "trace.h"
#include "update.h"
#include "worker_pool.h"

namespace millrace {

// What the collector works on; all outlive it.
struct CollectorParts {
  SimBackend& physics;
  UpdateStep& update;
  WorkerPool& pool;
  ActingPolicy& policy;
  Replay& replay;
  FirstError& error;
  Trace* trace;  // null: off
  int num_envs;
  SubmittedUpdate* device_update = nullptr;  // instead of update.update() in chunks
  NoiseRepetition* noise = nullptr;          // whose draws exploration takes; null: of each tick
  RewardScale* reward_scale = nullptr;       // null: off
};

class Collector {
 public:
  explicit Collector(const CollectorParts& parts);
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // Starts the thread; the next tick is `first_tick`.
  void start(uint64_t first_tick);

  // Ticks below `tick` may run.
  void release(uint64_t tick);

  // Returns once the ticks below `tick` are finished; throws the run's first error.
  void wait_finished(uint64_t tick);

  // Takes back what was released beyond the running tick; does not wait.
  void recall();

  // Recalls, waits for the running tick and returns the next one. The collector then rests until
  // the next release(): its parts may be read. Before, recall() and then commit what is published,
  // or the running tick may wait for a slot that only the caller can free.
  uint64_t pause();

  // Collector-side phase times since the last call.
  PhaseTimes take_times();

  // Ends the thread after the running tick. Safe to call twice.
  void stop();

 private:
  void main();
  bool attempt(const char* operation, const std::function<void()>& part);
  void run_ticks();
  bool await_release();
  void run_tick(uint64_t tick, PhaseTimes& times);
  void update(uint64_t tick, const Receipt& step, float* rows);
  void reset(uint64_t tick);

  CollectorParts parts_;
  std::mutex mutex_;
  std::condition_variable released_changed_;
  std::condition_variable finished_changed_;
  uint64_t released_ = 0;
  uint64_t next_ = 0;  // ticks below are finished
  bool running_tick_ = false;
  bool stopping_ = false;
  PhaseTimes times_;
  std::thread thread_;
};

}  // namespace millrace

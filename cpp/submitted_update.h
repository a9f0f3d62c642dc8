// SubmittedUpdate: the update step of a run on a device. The collector hands it the tick and waits;
// the submit thread makes every call to the device and wakes it:
//
//   STEP receipt -> run() | submit thread: upload -> argument block -> program -> download | UPDATE
//
// so that when run() returns, the carriers and outcomes in host memory are those of the tick, as if
// the host had updated them, and the rows lie in the slot in device memory. Physics and reset go on
// with the host's carriers; what a reset has changed is uploaded with the next tick.
//
// Threads: run(), carriers_changed() and observations() on the collector's; advance() and finish()
// on the submit thread; close(), facts() on any. A failure on the submit thread ends the run there
// (SubmitThread) and wakes the collector through close().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>

#include "device_update.h"
#include "doorbell.h"
#include "receipt.h"
#include "selected_program.h"
#include "stream_trace.h"
#include "trace.h"

namespace millrace {

class SubmittedUpdate {
 public:
  SubmittedUpdate(Backend& backend, const Task& task, const HostState& host, int num_envs,
                  const GraphSpec& graph, Doorbell& doorbell, Trace* trace,
                  const SelectionSpec& selection = {});

  // One tick; `step` proves that the physics' fields are those of the tick, `rows` is a slot in
  // device memory with rows of row_floats. Throws kState after close().
  Receipt run(const Receipt& step, const UpdateArguments& arguments, float* rows,
              uint64_t row_floats);
  // The host has changed carriers since the last run.
  void carriers_changed() { are_carriers_changed_ = true; }
  // In memory of the device; null where those of the host are newer.
  const float* observations() const {
    return are_carriers_changed_ ? nullptr : update_.observations();
  }

  // Does the tick that was handed over; false if there is none.
  bool advance();
  // Destroys the graph and writes the spans that are still out.
  void finish();
  void close();

  // Of the manifest: CapturedProgram::describe() and what a tick copies.
  nlohmann::json facts() const;
  // SelectedProgram::describe().
  nlohmann::json selection_facts() const { return program_.describe(); }
  uint64_t replays() const { return program_.program().replays(); }

 private:
  struct Tick {
    UpdateArguments arguments;
    float* rows;
    uint64_t row_floats;
    bool has_changed_carriers;
  };
  void submit(const Tick& tick);

  Stream stream_;
  std::unique_ptr<StreamTrace> stream_trace_;
  DeviceUpdate update_;
  SelectedProgram program_;
  Doorbell& doorbell_;
  Trace* const trace_;
  bool are_carriers_changed_ = true;  // collector thread

  mutable std::mutex mutex_;
  std::condition_variable done_changed_;
  Tick tick_ = {};
  uint64_t asked_ = 0;  // ticks handed over
  uint64_t done_ = 0;
  bool is_closed_ = false;
};

}  // namespace millrace

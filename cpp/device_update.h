// DeviceUpdate: the update step on a backend. Owns there a copy of the host blocks that the sim
// fields and the carriers of UpdateStep lie in, at addresses that never change, so that a graph may
// hold them; and parameters, motion and argument block.
//
// The constructor may be called by any thread; it uses a stream of its own. Per tick, on the submit
// thread: upload_inputs() (upload_carriers() too if the host has changed
// them: a reset, a checkpoint) -> set_block() -> submit() -> download(). Only submit() goes into a
// graph: it reads the tick, the seed, the penalty scale and where the rows go from the argument
// block, so a replay is the tick that the block says. Physics, reset and curriculum stay with their
// owners on the host, which holds every carrier between two ticks. Nothing is allocated after
// construction.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend.h"
#include "host_block.h"
#include "task.h"
#include "update_launch.h"

namespace millrace {

// What the update step works on, in host memory: the view's fields lie in the two blocks, the
// outcomes, one for each environment, in the carriers' one.
struct HostState {
  StateView view;
  HostRange sim, carriers;
  UpdateOutcome* outcomes;
};

class DeviceUpdate {
 public:
  // Memory of `host` should be pinned; it outlives this.
  DeviceUpdate(Backend& backend, Stream& stream, const Task& task, const HostState& host,
               int num_envs);

  // All of these enqueue; host memory must stay as it is until the stream has passed.
  void upload_carriers();
  void upload_inputs();  // sim fields and actions
  // Waits while the last but one block is in flight. `rows`: num_envs rows, row_floats apart, in
  // memory of the backend.
  void set_block(const UpdateArguments& arguments, float* rows, uint64_t row_floats);
  // Other ranges, weights or noise; what there is of slots and dimensions must stay.
  void set_params(const UpdateParams& params);
  void submit();
  // Where the observations lie that the last tick made.
  const float* observations() const { return launch_.state.episode[kObservation].data; }
  // Carriers and outcomes, to the host's block or to another of its size.
  void download() { download_to(host_.carriers.begin); }
  void download_to(char* carriers);
  // Waits for everything before. Throws kBug if the last tick that was downloaded has read another
  // argument block than the one that was set last.
  void finish();

  // What a tick must read and write at least: sim fields once, its own fields in and out, the row.
  uint64_t least_bytes(uint64_t row_floats) const;
  // What it holds on the device.
  uint64_t device_bytes() const;
  // Between host and device in a tick without and with a reset before it.
  uint64_t copied_bytes(bool has_reset) const;

 private:
  template <class T>
  T* on_device(T* host, const HostRange& range, const Memory& copy) const;
  void* copied(Stream& setup, const void* from, uint64_t bytes);
  void copy_motion(Stream& setup);

  Backend& backend_;
  Stream& stream_;
  const HostState host_;
  const int num_envs_;
  Memory sim_, carriers_, block_, echo_;
  Memory staged_blocks_;  // pinned, two of them
  Memory staged_params_;  // pinned
  Memory echoed_;         // pinned
  std::vector<std::unique_ptr<Memory>> constants_;
  Event settled_, params_passed_;
  std::unique_ptr<Event> block_passed_[2];
  int next_block_ = 0;
  u64 version_ = 0;  // of the block that was set last
  UpdateLaunch launch_ = {};
};

}  // namespace millrace

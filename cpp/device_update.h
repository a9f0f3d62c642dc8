// DeviceUpdate: the update step on a backend. Owns there what UpdateStep owns on the host (episode
// and counter carriers, parameters, the motion, the argument block, outcomes) and copies of the sim
// fields, at addresses that never change, so that a graph may hold them.
//
// Per tick, on the submit thread: upload_inputs() -> set_block() -> submit(). Only submit() goes
// into a graph: it reads the tick, the seed, the penalty scale and where the rows go from the
// argument block, so a replay is the tick that the block says. Physics, reset and curriculum stay
// with their owners on the host: upload() brings carriers that a reset has changed, download()
// takes them there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend.h"
#include "task.h"
#include "update_launch.h"

namespace millrace {

class DeviceUpdate {
 public:
  // `host` says which fields there are and how large; rows of every field must be contiguous.
  DeviceUpdate(Backend& backend, Stream& stream, const Task& task, const StateView& host,
               int num_envs);

  // Episode and counter fields; both wait until the copies are complete.
  void upload(const StateView& host);
  void download(const StateView& host) const;
  // What a tick reads from outside: sim fields and actions. Host memory must stay as it is until
  // the stream has passed.
  void upload_inputs(const StateView& host);
  // Enqueues the block's copy; waits while the last but one is in flight. `rows`: num_envs rows,
  // row_floats apart, in memory of the backend.
  void set_block(const UpdateArguments& arguments, float* rows, uint64_t row_floats);
  // Other ranges, weights or noise; enqueued. What there is of slots and dimensions must stay.
  void set_params(const UpdateParams& params);
  void submit();
  // Of the last tick; waits for it. Throws kBug if that tick has read another block than the one
  // that was set last.
  std::vector<UpdateOutcome> outcomes() const;

  // What a tick must read and write at least: sim fields once, its own fields in and out, the row.
  uint64_t least_bytes(uint64_t row_floats) const;

 private:
  template <class View>
  void copy(CopyDirection direction, const View& device, const View& host) const;
  void copy_carriers(CopyDirection direction, const StateView& host) const;
  void* copied(const void* from, uint64_t bytes);
  void settle() const;

  Backend& backend_;
  Stream& stream_;
  const int num_envs_;
  std::vector<std::unique_ptr<Memory>> memory_;
  mutable Event settled_;
  Memory block_, outcomes_, echo_;
  Memory staging_;        // pinned, two blocks
  Memory staged_params_;  // pinned
  uint64_t version_ = 0;  // of the block that was set last
  std::unique_ptr<Event> staged_[2];
  int next_block_ = 0;
  UpdateLaunch launch_ = {};
};

}  // namespace millrace

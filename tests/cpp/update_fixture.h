// What the tests of the update step on devices share: states of their own, and one update step on
// a backend, launched eagerly or as its CapturedProgram decides.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "captured_program.h"
#include "device_update.h"
#include "each_backend.h"
#include "update_launch.h"

namespace millrace {

// Host memory in the shape of another state; `like` says by its data which fields there are.
class HostState {
 public:
  HostState(const StateView& like, int num_envs) : view(like), num_envs_(num_envs) {
    for (FieldView& field : view.sim) take(field);
    for (FieldView& field : view.episode) take(field);
    for (CounterView& counter : view.counter) {
      ints_.emplace_back(static_cast<size_t>(num_envs));
      counter = {ints_.back().data(), 1};
    }
  }
  HostState(const HostState&) = delete;
  HostState& operator=(const HostState&) = delete;

  void assign(const StateView& other) {
    for (int i = 0; i < kSimFieldCount; ++i) copy(other.sim[i], view.sim[i]);
    for (int i = 0; i < kEpisodeFieldCount; ++i) copy(other.episode[i], view.episode[i]);
    for (int i = 0; i < kCounterFieldCount; ++i) {
      std::memcpy(view.counter[i].data, other.counter[i].data, counter_bytes());
    }
  }

  // What a tick reads from outside.
  void assign_inputs(const StateView& other) {
    for (int i = 0; i < kSimFieldCount; ++i) copy(other.sim[i], view.sim[i]);
    copy(other.episode[kAction], view.episode[kAction]);
  }

  // The first carrier that is not the same, bit for bit; empty if there is none.
  std::string difference_from(const StateView& other) const {
    for (int i = 0; i < kEpisodeFieldCount; ++i) {
      const FieldView& field = view.episode[i];
      if (field.data == nullptr) continue;
      if (std::memcmp(field.data, other.episode[i].data, bytes_of(field)) != 0) {
        return "episode field " + std::to_string(i);
      }
    }
    for (int i = 0; i < kCounterFieldCount; ++i) {
      if (std::memcmp(view.counter[i].data, other.counter[i].data, counter_bytes()) != 0) {
        return "counter " + std::to_string(i);
      }
    }
    return "";
  }

  StateView view;

 private:
  size_t bytes_of(const FieldView& field) const {
    return static_cast<size_t>(field.dim * num_envs_) * sizeof(float);
  }
  size_t counter_bytes() const { return static_cast<size_t>(num_envs_) * sizeof(int); }
  void take(FieldView& field) {
    if (field.data == nullptr) return;
    floats_.emplace_back(static_cast<size_t>(field.dim * num_envs_));
    field = {floats_.back().data(), field.dim, 1, field.dim};
  }
  void copy(const FieldView& from, const FieldView& to) {
    if (to.data != nullptr) std::memcpy(to.data, from.data, bytes_of(to));
  }

  const int num_envs_;
  std::vector<std::vector<float>> floats_;
  std::vector<std::vector<int>> ints_;
};

// What one tick has left: carriers, rows (row_floats apart) and outcomes.
struct TickResult {
  TickResult(const StateView& like, int num_envs, uint64_t row_floats)
      : state(like, num_envs),
        rows(static_cast<size_t>(num_envs) * row_floats),
        outcomes(static_cast<size_t>(num_envs)) {}

  // The first thing that is not the same, bit for bit; empty if there is none.
  std::string difference_from(const TickResult& other) const {
    for (size_t i = 0; i < outcomes.size(); ++i) {
      if (std::memcmp(&outcomes[i], &other.outcomes[i], sizeof(UpdateOutcome)) != 0) {
        return "the outcome of environment " + std::to_string(i);
      }
    }
    if (std::memcmp(rows.data(), other.rows.data(), rows.size() * sizeof(float)) != 0) {
      return "a row";
    }
    return state.difference_from(other.state.view);
  }

  HostState state;
  std::vector<float> rows;
  std::vector<UpdateOutcome> outcomes;
};

class TickOnDevice {
 public:
  TickOnDevice(Backend& backend, Stream& stream, const Task& task, const StateView& host,
               int num_envs, GraphPolicy policy)
      : row_floats_(static_cast<uint64_t>(task.layout.row_stride())),
        stream_(stream),
        rows_(backend, Memory::Kind::kDevice,
              static_cast<uint64_t>(num_envs) * row_floats_ * sizeof(float)),
        update_(backend, stream, task, host, num_envs),
        program_(backend, stream, {"update", policy, ""}, [this] { update_.submit(); }),
        result_(host, num_envs, row_floats_) {
    update_.upload(host);
  }

  DeviceUpdate& update() { return update_; }
  CapturedProgram& program() { return program_; }

  // `is_direct`: an eager launch whatever the program would do.
  const TickResult& run(const UpdateArguments& arguments, const StateView& inputs,
                        bool is_direct = false) {
    update_.upload_inputs(inputs);
    update_.set_block(arguments, rows_.floats(), row_floats_);
    is_direct ? update_.submit() : program_.run();
    stream_.copy(CopyDirection::kDeviceToHost, result_.rows.data(), rows_.floats(), rows_.bytes());
    result_.outcomes = update_.outcomes();
    update_.download(result_.state.view);
    if (!is_direct) program_.completed();
    return result_;
  }

 private:
  const uint64_t row_floats_;
  Stream& stream_;
  Memory rows_;
  DeviceUpdate update_;
  CapturedProgram program_;
  TickResult result_;
};

}  // namespace millrace

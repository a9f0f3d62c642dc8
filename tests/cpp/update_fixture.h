// What the tests of the update step on devices share: states of their own, and one update step on
// a backend, launched eagerly or as its CapturedProgram decides.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "captured_program.h"
#include "device_update.h"
#include "digest.h"
#include "each_backend.h"
#include "update_launch.h"

namespace millrace {

inline uint64_t digest_of(const void* data, size_t bytes, uint64_t before) {
  return digest_of(std::string(static_cast<const char*>(data), bytes), before);
}

// A copy of the blocks of another host state, at addresses of its own.
class StateCopy {
 public:
  StateCopy(const HostState& like, int num_envs)
      : host(like),
        num_envs_(num_envs),
        sim_(like.sim.begin, like.sim.begin + like.sim.bytes),
        carriers_(like.carriers.begin, like.carriers.begin + like.carriers.bytes) {
    host.sim.begin = sim_.data();
    host.carriers.begin = carriers_.data();
    for (FieldView& field : host.view.sim) move(field.data, like.sim, host.sim);
    for (FieldView& field : host.view.episode) move(field.data, like.carriers, host.carriers);
    for (CounterView& counter : host.view.counter) {
      move(counter.data, like.carriers, host.carriers);
    }
    move(host.outcomes, like.carriers, host.carriers);
  }
  StateCopy(const StateCopy&) = delete;
  StateCopy& operator=(const StateCopy&) = delete;

  void assign(const HostState& other) {
    assign_inputs(other);
    std::memcpy(host.carriers.begin, other.carriers.begin, carriers_.size());
  }

  // What a tick reads from outside.
  void assign_inputs(const HostState& other) {
    std::memcpy(host.sim.begin, other.sim.begin, sim_.size());
    const FieldView& action = host.view.episode[kAction];
    std::memcpy(action.data, other.view.episode[kAction].data, bytes_of(action));
  }

  // The first carrier or outcome that is not the same, bit for bit; empty if there is none.
  std::string difference_from(const HostState& other) const {
    for (int i = 0; i < kEpisodeFieldCount; ++i) {
      const FieldView& field = host.view.episode[i];
      if (field.data == nullptr) continue;
      if (std::memcmp(field.data, other.view.episode[i].data, bytes_of(field)) != 0) {
        return "episode field " + std::to_string(i);
      }
    }
    for (int i = 0; i < kCounterFieldCount; ++i) {
      const size_t bytes = static_cast<size_t>(num_envs_) * sizeof(int);
      if (std::memcmp(host.view.counter[i].data, other.view.counter[i].data, bytes) != 0) {
        return "counter " + std::to_string(i);
      }
    }
    for (int env = 0; env < num_envs_; ++env) {
      if (std::memcmp(&host.outcomes[env], &other.outcomes[env], sizeof(UpdateOutcome)) != 0) {
        return "the outcome of environment " + std::to_string(env);
      }
    }
    return "";
  }

  // Of all carriers and outcomes.
  uint64_t digest(uint64_t before) const {
    return digest_of(carriers_.data(), carriers_.size(), before);
  }

  HostState host;

 private:
  size_t bytes_of(const FieldView& field) const {
    return static_cast<size_t>(field.dim * num_envs_) * sizeof(float);
  }
  template <class T>
  static void move(T*& data, const HostRange& from, const HostRange& to) {
    if (data == nullptr) return;
    data = reinterpret_cast<T*>(to.begin + (reinterpret_cast<char*>(data) - from.begin));
  }

  const int num_envs_;
  std::vector<char> sim_, carriers_;
};

// What one tick has left: carriers, outcomes and rows (row_floats apart).
struct TickResult {
  TickResult(const HostState& like, int num_envs, uint64_t row_floats)
      : state(like, num_envs), rows(static_cast<size_t>(num_envs) * row_floats) {}

  // The first thing that is not the same, bit for bit; empty if there is none.
  std::string difference_from(const TickResult& other) const {
    if (std::memcmp(rows.data(), other.rows.data(), rows.size() * sizeof(float)) != 0) {
      return "a row";
    }
    return state.difference_from(other.state.host);
  }

  uint64_t digest(uint64_t before) const {
    return state.digest(digest_of(rows.data(), rows.size() * sizeof(float), before));
  }

  StateCopy state;
  std::vector<float> rows;
};

// The update step on the host. `run_robot(launch, env)` is one robot of a tick; by default that of
// a team of one.
class TickOnHost {
 public:
  using RunRobot = std::function<void(const UpdateLaunch& launch, int env)>;

  TickOnHost(const Task& task, const HostState& host, int num_envs, RunRobot run_robot = nullptr)
      : params_(task.params),
        num_envs_(num_envs),
        row_floats_(static_cast<uint64_t>(task.layout.row_stride())),
        run_robot_(std::move(run_robot)),
        result_(host, num_envs, row_floats_) {}

  void set_params(const UpdateParams& params) { params_ = params; }
  void upload(const HostState& host) { result_.state.assign(host); }

  const TickResult& run(const UpdateArguments& arguments, const HostState& inputs) {
    result_.state.assign_inputs(inputs);
    const HostState& host = result_.state.host;
    const UpdateBlock block = {arguments, result_.rows.data(), row_floats_, 1};
    u64 echo = 0;
    const UpdateLaunch launch = {&params_, &block, host.view, num_envs_, host.outcomes, &echo};
    for (int env = 0; env < num_envs_; ++env) {
      run_robot_ ? run_robot_(launch, env) : update_robot(SoloTeam(), launch, env);
    }
    return result_;
  }

 private:
  UpdateParams params_;
  const int num_envs_;
  const uint64_t row_floats_;
  const RunRobot run_robot_;
  TickResult result_;
};

class TickOnDevice {
 public:
  TickOnDevice(Backend& backend, Stream& stream, const Task& task, const HostState& host,
               int num_envs, GraphPolicy policy)
      : row_floats_(static_cast<uint64_t>(task.layout.row_stride())),
        stream_(stream),
        rows_(backend, Memory::Kind::kDevice,
              static_cast<uint64_t>(num_envs) * row_floats_ * sizeof(float)),
        result_(host, num_envs, row_floats_),
        update_(backend, stream, task, result_.state.host, num_envs),
        program_(backend, stream, {"update", policy, ""}, [this] { update_.submit(); }) {}

  DeviceUpdate& update() { return update_; }
  CapturedProgram& program() { return program_; }

  // Takes over carriers that a reset has changed.
  void upload(const HostState& host) {
    result_.state.assign(host);
    update_.upload_carriers();
  }

  // `is_direct`: an eager launch whatever the program would do.
  const TickResult& run(const UpdateArguments& arguments, const HostState& inputs,
                        bool is_direct = false) {
    result_.state.assign_inputs(inputs);
    update_.upload_inputs();
    update_.set_block(arguments, rows_.floats(), row_floats_);
    is_direct ? update_.submit() : program_.run();
    stream_.copy(CopyDirection::kDeviceToHost, result_.rows.data(), rows_.floats(), rows_.bytes());
    update_.download();
    update_.finish();
    if (!is_direct) program_.completed();
    return result_;
  }

 private:
  const uint64_t row_floats_;
  Stream& stream_;
  Memory rows_;
  TickResult result_;
  DeviceUpdate update_;
  CapturedProgram program_;
};

}  // namespace millrace

#include "device_policy.h"

#include <cstring>

namespace millrace {

namespace {

constexpr Precision kPrecision = Precision::kFp32;  // a small part of a tick in any
constexpr uint32_t kStreamIndex = 2;                // replay and update step have the first two

uint64_t observation_bytes(const PolicyPrograms& programs) {
  return static_cast<uint64_t>(programs.max_rows) *
         static_cast<uint64_t>(programs.shape.observation_dim) * sizeof(float);
}

uint64_t action_bytes(const PolicyPrograms& programs) {
  return static_cast<uint64_t>(programs.max_rows) *
         static_cast<uint64_t>(programs.shape.action_dim) * sizeof(float);
}

uint64_t drawn_at_bytes(const PolicyPrograms& programs) {
  return static_cast<uint64_t>(programs.max_rows) * sizeof(uint64_t);
}

uint64_t parameter_bytes(const PolicyPrograms& programs) {
  return programs.parameter_count * sizeof(float);
}

}  // namespace

DevicePolicy::DevicePolicy(Backend& backend, PolicyShape shape, int num_envs, uint64_t seed,
                           Noise noise, GraphPolicy graph, Trace* trace)
    : seed_(seed),
      noise_(noise),
      programs_(shape, num_envs),
      program_(programs_.record(num_envs, noise)),
      stream_(backend),
      stream_trace_(trace == nullptr
                        ? nullptr
                        : std::make_unique<StreamTrace>(backend, stream_, *trace, kStreamIndex)),
      device_(backend, stream_, programs_.workspace, {&program_}, kPrecision),
      observations_(backend, Memory::Kind::kDevice, observation_bytes(programs_)),
      drawn_at_(backend, Memory::Kind::kPinnedHost, drawn_at_bytes(programs_)),
      snapshots_{{backend, Memory::Kind::kDevice, parameter_bytes(programs_)},
                 {backend, Memory::Kind::kDevice, parameter_bytes(programs_)}},
      settled_(backend),
      captured_(backend, stream_, GraphSpec{"policy", graph, ""},
                [this] { device_.submit(program_); }) {}

uint64_t DevicePolicy::bytes_needed(const BackendApi& api, PolicyShape shape, int num_envs) {
  const PolicyPrograms programs(shape, num_envs);
  const Program program = programs.record(num_envs, Noise::kOfTheTick);
  return DeviceWorkspace::bytes_needed(api, programs.workspace, {&program}, kPrecision) +
         observation_bytes(programs) + 2 * parameter_bytes(programs);
}

uint64_t DevicePolicy::bytes() const {
  return device_.bytes() + observations_.bytes() + snapshots_[0].bytes() + snapshots_[1].bytes();
}

// Only this thread changes which one is the newest, so it may look without the lock.
void DevicePolicy::publish(Learner& learner) {
  const int next = 1 - newest_;
  learner.copy_policy_to(snapshots_[next].floats());
  std::lock_guard<std::mutex> lock(mutex_);
  newest_ = next;
  snapshot_is_new_ = true;
}

void DevicePolicy::take_snapshot() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!snapshot_is_new_) return;
  stream_.copy(CopyDirection::kDeviceToDevice, device_.floats(programs_.parameters),
               snapshots_[newest_].floats(), parameter_bytes(programs_));
  stream_.record(settled_);
  settled_.wait();
  snapshot_is_new_ = false;
}

const float* DevicePolicy::upload(const Observations& observations) {
  if (observations.on_device != nullptr) return observations.on_device;
  stream_.copy(CopyDirection::kHostToDevice, observations_.floats(), observations.on_host,
               observation_bytes(programs_));
  return observations_.floats();
}

void DevicePolicy::upload(const Draws& draws) {
  MR_CHECK((draws.drawn_at != nullptr) == (noise_ == Noise::kOfEachRow),
           "draws of another kind than the policy was made for");
  if (draws.drawn_at == nullptr) return;
  std::memcpy(drawn_at_.floats(), draws.drawn_at, drawn_at_bytes(programs_));
  stream_.copy(CopyDirection::kHostToDevice, device_.floats(programs_.drawn_at), drawn_at_.floats(),
               drawn_at_bytes(programs_));
}

void DevicePolicy::act(const Observations& observations, const Draws& draws, float* actions) {
  take_snapshot();
  {
    StreamSpan span(stream_trace_.get(), span::kGpuPolicy);
    Arguments arguments{};
    arguments.rows = upload(observations);
    arguments.row_stride = static_cast<u64>(programs_.shape.observation_dim);
    arguments.seed = seed_;
    arguments.tick = draws.tick;
    upload(draws);
    device_.set_arguments(arguments);
    captured_.run();
    stream_.copy(CopyDirection::kDeviceToHost, actions, device_.floats(programs_.action),
                 action_bytes(programs_));
  }
  stream_.record(settled_);
  settled_.wait();
  captured_.completed();
  if (stream_trace_ != nullptr) stream_trace_->collect(false);
}

void DevicePolicy::finish() {
  if (stream_trace_ != nullptr) stream_trace_->collect(true);
  captured_.release();
}

nlohmann::json DevicePolicy::facts() const {
  return {{"place", "device"},
          {"precision", to_string(device_.precision())},
          {"reason", "it acts where the learner's programs run: on the device"},
          {"copied_bytes_per_tick",
           {{"observations_unless_on_device", observation_bytes(programs_)},
            {"draws", noise_ == Noise::kOfEachRow ? drawn_at_bytes(programs_) : 0},
            {"arguments", device_.block_bytes()},
            {"actions", action_bytes(programs_)}}}};
}

nlohmann::json DevicePolicy::graph_facts() const {
  nlohmann::json facts = captured_.describe();
  facts["place"] = "device";
  return facts;
}

}  // namespace millrace

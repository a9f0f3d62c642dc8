#include "device_update.h"

#include <cstring>
#include <string>

#include "status.h"

namespace millrace {

namespace {

uint64_t bytes_of(const FieldView& field, int num_envs) {
  if (field.data == nullptr) return 0;
  MR_CHECK(field.component_stride == 1 && field.env_stride == field.dim,
           "a field that is copied must be contiguous");
  return static_cast<uint64_t>(field.dim) * static_cast<uint64_t>(num_envs) * sizeof(float);
}

uint64_t bytes_of(const CounterView& counter, int num_envs) {
  MR_CHECK(counter.env_stride == 1, "a counter that is copied must be contiguous");
  return static_cast<uint64_t>(num_envs) * sizeof(int);
}

}  // namespace

DeviceUpdate::DeviceUpdate(Backend& backend, Stream& stream, const Task& task,
                           const StateView& host, int num_envs)
    : backend_(backend),
      stream_(stream),
      num_envs_(num_envs),
      settled_(backend),
      block_(backend, Memory::Kind::kDevice, sizeof(UpdateBlock)),
      outcomes_(backend, Memory::Kind::kDevice,
                static_cast<uint64_t>(num_envs) * sizeof(UpdateOutcome)),
      echo_(backend, Memory::Kind::kDevice, sizeof(u64)),
      staging_(backend, Memory::Kind::kPinnedHost, 2 * sizeof(UpdateBlock)),
      staged_params_(backend, Memory::Kind::kPinnedHost, sizeof(UpdateParams)) {
  for (std::unique_ptr<Event>& event : staged_) {
    event = std::make_unique<Event>(backend);
    stream.record(*event);
  }
  launch_.state = host;
  for (FieldView& field : launch_.state.sim) {
    field.data = static_cast<float*>(copied(field.data, bytes_of(field, num_envs)));
  }
  for (FieldView& field : launch_.state.episode) {
    field.data = static_cast<float*>(copied(field.data, bytes_of(field, num_envs)));
  }
  for (CounterView& counter : launch_.state.counter) {
    counter.data = static_cast<int*>(copied(counter.data, bytes_of(counter, num_envs)));
  }
  MotionView& motion = launch_.state.motion;
  const auto frames = static_cast<uint64_t>(motion.frames);
  const uint64_t joints = frames * static_cast<uint64_t>(motion.joints) * sizeof(float);
  const uint64_t bodies = frames * static_cast<uint64_t>(motion.bodies) * sizeof(float);
  const auto floats = [this](const float* from, uint64_t bytes) {
    return static_cast<const float*>(copied(from, bytes));
  };
  motion.joint_position = floats(motion.joint_position, joints);
  motion.joint_velocity = floats(motion.joint_velocity, joints);
  motion.body_position = floats(motion.body_position, 3 * bodies);
  motion.body_quaternion = floats(motion.body_quaternion, 4 * bodies);
  motion.body_linear_velocity = floats(motion.body_linear_velocity, 3 * bodies);
  motion.body_angular_velocity = floats(motion.body_angular_velocity, 3 * bodies);
  motion.clip_end = static_cast<const int*>(copied(motion.clip_end, frames * sizeof(int)));
  launch_.params = static_cast<const UpdateParams*>(copied(&task.params, sizeof(task.params)));
  launch_.block = reinterpret_cast<const UpdateBlock*>(block_.floats());
  launch_.echo = reinterpret_cast<u64*>(echo_.floats());
  launch_.outcomes = reinterpret_cast<UpdateOutcome*>(outcomes_.floats());
  launch_.num_envs = num_envs;
  settle();
}

// Device memory that starts as a copy of the host's; null for nothing.
void* DeviceUpdate::copied(const void* from, uint64_t bytes) {
  if (bytes == 0) return nullptr;
  memory_.push_back(std::make_unique<Memory>(backend_, Memory::Kind::kDevice, bytes));
  void* to = memory_.back()->floats();
  stream_.copy(CopyDirection::kHostToDevice, to, from, bytes);
  return to;
}

void DeviceUpdate::settle() const {
  stream_.record(settled_);
  settled_.wait();
}

// Copies a field or counter to the device or back; of fields that the task does not use, nothing.
template <class View>
void DeviceUpdate::copy(CopyDirection direction, const View& device, const View& host) const {
  const uint64_t bytes = bytes_of(host, num_envs_);
  if (bytes == 0) return;
  const bool is_upload = direction == CopyDirection::kHostToDevice;
  stream_.copy(direction, is_upload ? device.data : host.data, is_upload ? host.data : device.data,
               bytes);
}

void DeviceUpdate::copy_carriers(CopyDirection direction, const StateView& host) const {
  for (int i = 0; i < kEpisodeFieldCount; ++i) {
    copy(direction, launch_.state.episode[i], host.episode[i]);
  }
  for (int i = 0; i < kCounterFieldCount; ++i) {
    copy(direction, launch_.state.counter[i], host.counter[i]);
  }
  settle();
}

void DeviceUpdate::upload(const StateView& host) {
  copy_carriers(CopyDirection::kHostToDevice, host);
}

void DeviceUpdate::download(const StateView& host) const {
  copy_carriers(CopyDirection::kDeviceToHost, host);
}

void DeviceUpdate::upload_inputs(const StateView& host) {
  for (int i = 0; i < kSimFieldCount; ++i) {
    copy(CopyDirection::kHostToDevice, launch_.state.sim[i], host.sim[i]);
  }
  copy(CopyDirection::kHostToDevice, launch_.state.episode[kAction], host.episode[kAction]);
}

void DeviceUpdate::set_block(const UpdateArguments& arguments, float* rows, uint64_t row_floats) {
  Event& free_again = *staged_[next_block_];
  free_again.wait();
  char* block = reinterpret_cast<char*>(staging_.floats()) +
                static_cast<size_t>(next_block_) * sizeof(UpdateBlock);
  const UpdateBlock next = {arguments, rows, row_floats, ++version_};
  std::memcpy(block, &next, sizeof(next));
  stream_.copy(CopyDirection::kHostToDevice, block_.floats(), block, sizeof(next));
  stream_.record(free_again);
  next_block_ = 1 - next_block_;
}

void DeviceUpdate::set_params(const UpdateParams& params) {
  settle();  // the staged ones may be on their way
  std::memcpy(staged_params_.floats(), &params, sizeof(params));
  stream_.copy(CopyDirection::kHostToDevice, const_cast<UpdateParams*>(launch_.params),
               staged_params_.floats(), sizeof(params));
}

void DeviceUpdate::submit() { stream_.update(launch_); }

std::vector<UpdateOutcome> DeviceUpdate::outcomes() const {
  std::vector<UpdateOutcome> found(static_cast<size_t>(num_envs_));
  u64 echo = 0;
  stream_.copy(CopyDirection::kDeviceToHost, found.data(), outcomes_.floats(), outcomes_.bytes());
  stream_.copy(CopyDirection::kDeviceToHost, &echo, echo_.floats(), sizeof(echo));
  settle();
  MR_CHECK(echo == version_, "the update step read argument block " + std::to_string(echo) +
                                 ", not " + std::to_string(version_));
  return found;
}

uint64_t DeviceUpdate::least_bytes(uint64_t row_floats) const {
  uint64_t bytes = static_cast<uint64_t>(num_envs_) * row_floats * sizeof(float);
  for (const FieldView& field : launch_.state.sim) bytes += bytes_of(field, num_envs_);
  for (const FieldView& field : launch_.state.episode) bytes += 2 * bytes_of(field, num_envs_);
  for (const CounterView& counter : launch_.state.counter) {
    bytes += 2 * bytes_of(counter, num_envs_);
  }
  return bytes + outcomes_.bytes();
}

}  // namespace millrace

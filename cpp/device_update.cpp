#include "device_update.h"

#include <cstring>
#include <string>

#include "status.h"

namespace millrace {

namespace {

uint64_t bytes_of(const FieldView& field, int num_envs) {
  return static_cast<uint64_t>(field.dim) * static_cast<uint64_t>(num_envs) * sizeof(float);
}

}  // namespace

DeviceUpdate::DeviceUpdate(Backend& backend, Stream& stream, const Task& task,
                           const HostState& host, int num_envs)
    : backend_(backend),
      stream_(stream),
      host_(host),
      num_envs_(num_envs),
      sim_(backend, Memory::Kind::kDevice, host.sim.bytes),
      carriers_(backend, Memory::Kind::kDevice, host.carriers.bytes),
      block_(backend, Memory::Kind::kDevice, sizeof(UpdateBlock)),
      echo_(backend, Memory::Kind::kDevice, sizeof(u64)),
      staged_blocks_(backend, Memory::Kind::kPinnedHost, 2 * sizeof(UpdateBlock)),
      staged_params_(backend, Memory::Kind::kPinnedHost, sizeof(UpdateParams)),
      echoed_(backend, Memory::Kind::kPinnedHost, sizeof(u64)),
      settled_(backend),
      params_passed_(backend) {
  Stream setup(backend);
  for (std::unique_ptr<Event>& event : block_passed_) {
    event = std::make_unique<Event>(backend);
    setup.record(*event);
  }
  setup.record(params_passed_);
  launch_.state = host.view;
  for (FieldView& field : launch_.state.sim) field.data = on_device(field.data, host.sim, sim_);
  for (FieldView& field : launch_.state.episode) {
    field.data = on_device(field.data, host.carriers, carriers_);
  }
  for (CounterView& counter : launch_.state.counter) {
    counter.data = on_device(counter.data, host.carriers, carriers_);
  }
  copy_motion(setup);
  launch_.params =
      static_cast<const UpdateParams*>(copied(setup, &task.params, sizeof(task.params)));
  launch_.block = reinterpret_cast<const UpdateBlock*>(block_.floats());
  launch_.outcomes = on_device(host.outcomes, host.carriers, carriers_);
  launch_.num_envs = num_envs;
  launch_.echo = reinterpret_cast<u64*>(echo_.floats());
  setup.copy(CopyDirection::kHostToDevice, carriers_.floats(), host.carriers.begin,
             host.carriers.bytes);
  setup.record(settled_);
  settled_.wait();
}

// The same place in the device's copy of a block; null stays null.
template <class T>
T* DeviceUpdate::on_device(T* host, const HostRange& range, const Memory& copy) const {
  if (host == nullptr) return nullptr;
  const auto offset = static_cast<uint64_t>(reinterpret_cast<char*>(host) - range.begin);
  MR_CHECK(offset < range.bytes, "a field of the update step lies outside of its block");
  return reinterpret_cast<T*>(reinterpret_cast<char*>(copy.floats()) + offset);
}

// Device memory that starts as a copy of the host's; null for nothing.
void* DeviceUpdate::copied(Stream& setup, const void* from, uint64_t bytes) {
  if (bytes == 0) return nullptr;
  // new, here and elsewhere: make_unique would be the site that the memory names.
  constants_.push_back(std::unique_ptr<Memory>(new Memory(backend_, Memory::Kind::kDevice, bytes)));
  void* to = constants_.back()->floats();
  setup.copy(CopyDirection::kHostToDevice, to, from, bytes);
  return to;
}

void DeviceUpdate::copy_motion(Stream& setup) {
  MotionView& motion = launch_.state.motion;
  const auto frames = static_cast<uint64_t>(motion.frames);
  const uint64_t joints = frames * static_cast<uint64_t>(motion.joints) * sizeof(float);
  const uint64_t bodies = frames * static_cast<uint64_t>(motion.bodies) * sizeof(float);
  const auto floats = [&](const float* from, uint64_t bytes) {
    return static_cast<const float*>(copied(setup, from, bytes));
  };
  motion.joint_position = floats(motion.joint_position, joints);
  motion.joint_velocity = floats(motion.joint_velocity, joints);
  motion.body_position = floats(motion.body_position, 3 * bodies);
  motion.body_quaternion = floats(motion.body_quaternion, 4 * bodies);
  motion.body_linear_velocity = floats(motion.body_linear_velocity, 3 * bodies);
  motion.body_angular_velocity = floats(motion.body_angular_velocity, 3 * bodies);
  motion.clip_end = static_cast<const int*>(copied(setup, motion.clip_end, frames * sizeof(int)));
}

void DeviceUpdate::upload_carriers() {
  stream_.copy(CopyDirection::kHostToDevice, carriers_.floats(), host_.carriers.begin,
               host_.carriers.bytes);
}

void DeviceUpdate::upload_inputs() {
  stream_.copy(CopyDirection::kHostToDevice, sim_.floats(), host_.sim.begin, host_.sim.bytes);
  const FieldView& action = host_.view.episode[kAction];
  stream_.copy(CopyDirection::kHostToDevice, launch_.state.episode[kAction].data, action.data,
               bytes_of(action, num_envs_));
}

void DeviceUpdate::set_block(const UpdateArguments& arguments, float* rows, uint64_t row_floats) {
  Event& passed = *block_passed_[next_block_];
  passed.wait();
  UpdateBlock* staged = reinterpret_cast<UpdateBlock*>(staged_blocks_.floats()) + next_block_;
  *staged = {arguments, rows, row_floats, ++version_};
  stream_.copy(CopyDirection::kHostToDevice, block_.floats(), staged, sizeof(*staged));
  stream_.record(passed);
  next_block_ = 1 - next_block_;
}

void DeviceUpdate::set_params(const UpdateParams& params) {
  params_passed_.wait();
  std::memcpy(staged_params_.floats(), &params, sizeof(params));
  stream_.copy(CopyDirection::kHostToDevice, const_cast<UpdateParams*>(launch_.params),
               staged_params_.floats(), sizeof(params));
  stream_.record(params_passed_);
}

void DeviceUpdate::submit() { stream_.update(launch_); }

void DeviceUpdate::download_to(char* carriers) {
  stream_.copy(CopyDirection::kDeviceToHost, carriers, carriers_.floats(), host_.carriers.bytes);
  stream_.copy(CopyDirection::kDeviceToHost, echoed_.floats(), echo_.floats(), sizeof(u64));
  stream_.record(settled_);
}

void DeviceUpdate::finish() {
  settled_.wait();
  const u64 echo = *reinterpret_cast<const u64*>(echoed_.floats());
  MR_CHECK(echo == version_, "the update step read argument block " + std::to_string(echo) +
                                 ", not " + std::to_string(version_));
}

uint64_t DeviceUpdate::least_bytes(uint64_t row_floats) const {
  const auto envs = static_cast<uint64_t>(num_envs_);
  uint64_t bytes = envs * (row_floats * sizeof(float) + sizeof(UpdateOutcome));
  for (const FieldView& field : launch_.state.sim) bytes += bytes_of(field, num_envs_);
  for (const FieldView& field : launch_.state.episode) bytes += 2 * bytes_of(field, num_envs_);
  return bytes + 2 * kCounterFieldCount * envs * sizeof(int);
}

uint64_t DeviceUpdate::device_bytes() const {
  uint64_t bytes = sim_.bytes() + carriers_.bytes() + block_.bytes() + echo_.bytes();
  for (const std::unique_ptr<Memory>& constant : constants_) bytes += constant->bytes();
  return bytes;
}

uint64_t DeviceUpdate::copied_bytes(bool has_reset) const {
  const uint64_t actions = bytes_of(host_.view.episode[kAction], num_envs_);
  return host_.sim.bytes + (has_reset ? host_.carriers.bytes : actions) + host_.carriers.bytes +
         sizeof(UpdateBlock) + sizeof(u64);
}

}  // namespace millrace

#include "physics_mujoco.h"

#include <algorithm>
#include <cmath>

#include "sim_fields.h"

namespace millrace {

namespace {

constexpr float kGyroMax = 34.9f;  // rad/s, the range of the robot's IMU

// MuJoCo's own test for a number that the simulation cannot go on with.
bool is_bad(double x) { return !(std::abs(x) <= mjMAXVAL); }

bool any_bad(const mjtNum* values, int count) {
  return std::any_of(values, values + count, is_bad);
}

int grain_of(int num_envs, int workers) { return std::clamp(num_envs / (workers * 16), 1, 16); }

}  // namespace

PhysicsMujoco::PhysicsMujoco(const SimSpec& spec, int num_envs, WorkerPool& pool, Backend* device)
    : pool_(pool),
      num_envs_(num_envs),
      substeps_(spec.substeps),
      action_scale_(spec.action_scale),
      is_legged_(spec.is_legged) {
  if (num_envs < 1) throw Failure(Code::kInvalid, "env.num_envs must be at least 1");
  if (spec.substeps < 1) throw Failure(Code::kInvalid, "a tick needs at least 1 substep");
  model_ = load_model(spec.model_path);
  index_ = index_model(*model_, spec);
  description_ = describe_model(*model_, index_);
  default_controls_ = default_controls(*model_, description_);
  for (int i = 0; i < model_->nu; ++i) is_servo_.push_back(is_servo(*model_, i));
  for (int i = 0; i < pool.workers(); ++i) {
    workers_.push_back({copy_model(*model_), make_data(*model_), 1.0, 1.0});
  }

  const size_t envs = static_cast<size_t>(num_envs);
  qpos_.resize(envs * static_cast<size_t>(model_->nq));
  qvel_.resize(envs * static_cast<size_t>(model_->nv));
  warm_start_.resize(qvel_.size());
  time_.resize(envs);
  activation_.resize(envs * static_cast<size_t>(model_->na));
  gains_.assign(2 * envs, 1.0);
  cause_.assign(envs, kStable);
  allocate_fields(spec, device);

  for (int env = 0; env < num_envs; ++env) {
    std::copy(description_.default_qpos.begin(), description_.default_qpos.end(),
              qpos_.begin() + static_cast<std::ptrdiff_t>(row(env, model_->nq)));
  }
  const std::vector<uint8_t> everyone(envs, 1);
  const std::vector<double> start_qpos = qpos_, start_qvel = qvel_, start_gains = gains_;
  reset(everyone.data(), start_qpos.data(), start_qvel.data(), start_gains.data());
}

SimCapabilities PhysicsMujoco::capabilities() const {
  const bool all_servos = std::all_of(is_servo_.begin(), is_servo_.end(), [](bool b) { return b; });
  return {all_servos, true, "mujoco"};
}

void PhysicsMujoco::allocate_fields(const SimSpec& spec, Backend* device) {
  const auto dims = sim_field_dims(spec, static_cast<int>(index_.joints.size()));
  HostBlockLayout layout;
  uint64_t offsets[kSimFieldCount];
  for (size_t field = 0; field < kSimFieldCount; ++field) {
    offsets[field] = layout.add(row(num_envs_, dims[field]) * sizeof(float));
  }
  fields_ = std::make_unique<HostBlock>(layout, device);
  for (size_t field = 0; field < kSimFieldCount; ++field) {
    auto* data = reinterpret_cast<float*>(fields_->at(offsets[field]));
    views_[field] = {dims[field] ? data : nullptr, dims[field], 1, dims[field]};
  }
}

void PhysicsMujoco::load_slab(Worker& worker, int env) const {
  mjData& data = *worker.data;
  const mjModel& model = *model_;
  std::copy_n(&qpos_[row(env, model.nq)], model.nq, data.qpos);
  std::copy_n(&qvel_[row(env, model.nv)], model.nv, data.qvel);
  std::copy_n(&warm_start_[row(env, model.nv)], model.nv, data.qacc_warmstart);
  std::copy_n(activation_.data() + row(env, model.na), model.na, data.act);
  data.time = time_[static_cast<size_t>(env)];
}

void PhysicsMujoco::save_slab(const Worker& worker, int env) {
  const mjData& data = *worker.data;
  const mjModel& model = *model_;
  std::copy_n(data.qpos, model.nq, &qpos_[row(env, model.nq)]);
  std::copy_n(data.qvel, model.nv, &qvel_[row(env, model.nv)]);
  std::copy_n(data.qacc_warmstart, model.nv, &warm_start_[row(env, model.nv)]);
  std::copy_n(data.act, model.na, activation_.data() + row(env, model.na));
  time_[static_cast<size_t>(env)] = data.time;
}

void PhysicsMujoco::set_gains(Worker& worker, int env) const {
  const double kp = gains_[row(env, 2)];
  const double kd = gains_[row(env, 2) + 1];
  if (kp == worker.kp_factor && kd == worker.kd_factor) return;
  for (int i = 0; i < model_->nu; ++i) {
    if (!is_servo_[static_cast<size_t>(i)]) continue;
    worker.model->actuator_gainprm[i * mjNGAIN] = kp * model_->actuator_gainprm[i * mjNGAIN];
    worker.model->actuator_biasprm[i * mjNBIAS + 1] =
        kp * model_->actuator_biasprm[i * mjNBIAS + 1];
    worker.model->actuator_biasprm[i * mjNBIAS + 2] =
        kd * model_->actuator_biasprm[i * mjNBIAS + 2];
  }
  worker.kp_factor = kp;
  worker.kd_factor = kd;
}

PhysicsMujoco::Cause PhysicsMujoco::warned(const mjData& data) {
  if (data.warning[mjWARN_BADQPOS].number) return kBadPosition;
  if (data.warning[mjWARN_BADQVEL].number) return kBadVelocity;
  if (data.warning[mjWARN_BADQACC].number) return kBadAcceleration;
  if (data.warning[mjWARN_BADCTRL].number) return kBadControl;
  return kStable;
}

PhysicsMujoco::Cause PhysicsMujoco::run_substeps(Worker& worker, int env,
                                                 const float* action) const {
  mjData& data = *worker.data;
  load_slab(worker, env);
  set_gains(worker, env);
  for (int i = 0; i < model_->nu; ++i) {
    data.ctrl[i] = default_controls_[static_cast<size_t>(i)] + action_scale_ * action[i];
  }
  for (const int warning : {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC, mjWARN_BADCTRL}) {
    data.warning[warning].number = 0;
  }
  for (int substep = 0; substep < substeps_; ++substep) {
    mj_step(worker.model.get(), &data);
    const Cause cause = warned(data);
    if (cause != kStable) return cause;
  }
  // MuJoCo looks at what the last step produced only when the next one begins.
  if (any_bad(data.qpos, model_->nq)) return kBadPosition;
  if (any_bad(data.qvel, model_->nv)) return kBadVelocity;
  return kStable;
}

void PhysicsMujoco::step_environment(Worker& worker, int env, const float* action) {
  int32_t& cause = cause_[static_cast<size_t>(env)];
  if (cause != kStable) return;  // until its reset
  cause = run_substeps(worker, env, action);
  if (cause != kStable) {
    component(views_[kUnstable], env, 0) = 1.0f;
    return;
  }
  save_slab(worker, env);
  write_foot_contact(*worker.data, env);
  write_fields(worker, env);
}

Receipt PhysicsMujoco::step(const float* actions, uint64_t) {
  const std::vector<int32_t> before = cause_;
  pool_.run(num_envs_, grain_of(num_envs_, pool_.workers()), [&](int id, int begin, int end) {
    Worker& worker = workers_[static_cast<size_t>(id)];
    for (int env = begin; env < end; ++env) {
      step_environment(worker, env, actions + row(env, model_->nu));
    }
  });
  for (size_t env = 0; env < cause_.size(); ++env) {
    if (before[env] == kStable && cause_[env] != kStable) ++cause_counts_[cause_[env]];
  }
  return {Operation::kStep, ++steps_submitted_, 0};
}

void PhysicsMujoco::reset_environment(Worker& worker, int env, const double* qpos,
                                      const double* qvel, const double* gains) {
  if (any_bad(qpos, model_->nq) || any_bad(qvel, model_->nv) || any_bad(gains, 2)) {
    throw Failure(Code::kInvalid,
                  "reset of environment " + std::to_string(env) + " to a state that is not finite");
  }
  std::copy_n(qpos, model_->nq, &qpos_[row(env, model_->nq)]);
  std::copy_n(qvel, model_->nv, &qvel_[row(env, model_->nv)]);
  std::copy_n(gains, 2, &gains_[row(env, 2)]);
  std::fill_n(&warm_start_[row(env, model_->nv)], model_->nv, 0.0);
  std::fill_n(activation_.data() + row(env, model_->na), model_->na, 0.0);
  time_[static_cast<size_t>(env)] = 0.0;
  cause_[static_cast<size_t>(env)] = kStable;
  component(views_[kUnstable], env, 0) = 0.0f;

  load_slab(worker, env);
  write_fields(worker, env);
  if (is_legged_) {
    mj_collision(worker.model.get(), worker.data.get());
    write_foot_contact(*worker.data, env);
  }
}

void PhysicsMujoco::reset(const uint8_t* mask, const double* qpos, const double* qvel,
                          const double* gains) {
  reset_list_.clear();
  for (int env = 0; env < num_envs_; ++env) {
    if (mask[env]) reset_list_.push_back(env);
  }
  pool_.run(static_cast<int>(reset_list_.size()), 8, [&](int id, int begin, int end) {
    for (int i = begin; i < end; ++i) {
      const int env = reset_list_[static_cast<size_t>(i)];
      reset_environment(workers_[static_cast<size_t>(id)], env, qpos + row(env, model_->nq),
                        qvel + row(env, model_->nv), gains + row(env, 2));
    }
  });
}

void PhysicsMujoco::apply_velocity_change(const uint8_t* mask, const float* dv6) {
  for (int env = 0; env < num_envs_; ++env) {
    if (!mask[env] || cause_[static_cast<size_t>(env)] != kStable) continue;
    if (!is_legged_)
      throw Failure(Code::kState, "a velocity change needs a robot with a free root");
    mjtNum quaternion[4], inverse[4], change[6], local[3];
    std::copy_n(dv6 + row(env, 6), 6, change);
    std::copy_n(&qpos_[row(env, model_->nq) + 3], 4, quaternion);
    mju_normalize4(quaternion);
    mju_negQuat(inverse, quaternion);
    // A free joint's angular velocity is in the axes of its body.
    mju_rotVecQuat(local, change + 3, inverse);
    double* velocity = &qvel_[row(env, model_->nv)];
    for (int i = 0; i < 3; ++i) velocity[i] += change[i];
    for (int i = 0; i < 3; ++i) velocity[3 + i] += local[i];
  }
}

void PhysicsMujoco::put(SimField field, int env, int offset, const mjtNum* values, int count) {
  for (int i = 0; i < count; ++i) {
    component(views_[field], env, offset + i) = static_cast<float>(values[i]);
  }
}

void PhysicsMujoco::write_foot_contact(const mjData& data, int env) {
  const int feet = views_[kFootContact].dim;
  for (int foot = 0; foot < feet; ++foot) {
    const int body = index_.foot_bodies[static_cast<size_t>(foot)];
    bool touches = false;
    for (int i = 0; i < data.ncon && !touches; ++i) {
      const int first = model_->geom_bodyid[data.contact[i].geom1];
      const int second = model_->geom_bodyid[data.contact[i].geom2];
      // The ground is whatever is welded to the world.
      touches = (first == body && model_->body_weldid[second] == 0) ||
                (second == body && model_->body_weldid[first] == 0);
    }
    component(views_[kFootContact], env, foot) = touches ? 1.0f : 0.0f;
  }
}

void PhysicsMujoco::write_fields(Worker& worker, int env) {
  mjData& data = *worker.data;
  const size_t joints = index_.joints.size();
  for (size_t i = 0; i < joints; ++i) {
    put(kJointPosition, env, static_cast<int>(i), data.qpos + description_.joint_qpos_address[i],
        1);
    put(kJointVelocity, env, static_cast<int>(i), data.qvel + description_.joint_dof_address[i], 1);
  }
  if (!is_legged_ && index_.bodies.empty()) return;
  mj_kinematics(worker.model.get(), &data);
  mj_comPos(worker.model.get(), &data);
  mj_comVel(worker.model.get(), &data);
  if (is_legged_) write_root_and_imu(worker, env);
  write_bodies(worker, env);
}

void PhysicsMujoco::write_root_and_imu(const Worker& worker, int env) {
  const mjModel* model = worker.model.get();
  const mjData& data = *worker.data;
  put(kRootPosition, env, 0, data.xpos + 3 * index_.root_body, 3);
  put(kRootQuaternion, env, 0, data.xquat + 4 * index_.root_body, 4);
  put(kRootLinearVelocity, env, 0, data.qvel, 3);
  put(kRootAngularVelocity, env, 0, data.qvel + 3, 3);

  mjtNum velocity[6];  // angular, linear
  mj_objectVelocity(model, &data, mjOBJ_SITE, index_.torso_site, velocity, 1);
  put(kGyro, env, 0, velocity, 3);
  for (int i = 0; i < 3; ++i) {
    float& rate = component(views_[kGyro], env, i);
    rate = std::clamp(rate, -kGyroMax, kGyroMax);
  }
  mj_objectVelocity(model, &data, mjOBJ_SITE, index_.pelvis_site, velocity, 1);
  put(kLocalLinearVelocity, env, 0, velocity + 3, 3);

  const mjtNum* third_row = data.xmat + 9 * index_.torso_body + 6;
  const mjtNum gravity[3] = {-third_row[0], -third_row[1], -third_row[2]};
  put(kProjectedGravity, env, 0, gravity, 3);

  for (size_t foot = 0; foot < index_.foot_sites.size(); ++foot) {
    const int site = index_.foot_sites[foot];
    mjtNum quaternion[4];
    mju_mulQuat(quaternion, data.xquat + 4 * index_.foot_bodies[foot], model->site_quat + 4 * site);
    put(kFootPosition, env, 3 * static_cast<int>(foot), data.site_xpos + 3 * site, 3);
    put(kFootQuaternion, env, 4 * static_cast<int>(foot), quaternion, 4);
  }
}

void PhysicsMujoco::write_bodies(const Worker& worker, int env) {
  const mjData& data = *worker.data;
  for (size_t i = 0; i < index_.bodies.size(); ++i) {
    const int body = index_.bodies[i];
    const int at = static_cast<int>(i);
    mjtNum velocity[6];
    mj_objectVelocity(worker.model.get(), &data, mjOBJ_XBODY, body, velocity, 0);
    put(kBodyPosition, env, 3 * at, data.xpos + 3 * body, 3);
    put(kBodyQuaternion, env, 4 * at, data.xquat + 4 * body, 4);
    put(kBodyLinearVelocity, env, 3 * at, velocity + 3, 3);
    put(kBodyAngularVelocity, env, 3 * at, velocity, 3);
  }
}

uint64_t PhysicsMujoco::unstable_count() const {
  uint64_t count = 0;
  for (const uint64_t of_cause : cause_counts_) count += of_cause;
  return count;
}

nlohmann::json PhysicsMujoco::unstable_causes() const {
  return {{"qpos", cause_counts_[kBadPosition]},
          {"qvel", cause_counts_[kBadVelocity]},
          {"qacc", cause_counts_[kBadAcceleration]},
          {"ctrl", cause_counts_[kBadControl]}};
}

void PhysicsMujoco::register_state(StateRegistry& registry) {
  const int64_t envs = num_envs_;
  registry.add("physics/qpos", DType::kF64, {envs, model_->nq}, qpos_.data());
  registry.add("physics/qvel", DType::kF64, {envs, model_->nv}, qvel_.data());
  registry.add("physics/warm_start", DType::kF64, {envs, model_->nv}, warm_start_.data());
  registry.add("physics/time", DType::kF64, {envs}, time_.data());
  if (model_->na > 0) {
    registry.add("physics/activation", DType::kF64, {envs, model_->na}, activation_.data());
  }
  registry.add("physics/gains", DType::kF64, {envs, 2}, gains_.data());
  registry.add("physics/cause", DType::kI32, {envs}, cause_.data());
  registry.add("physics/cause_counts", DType::kU64, {kCauseCount}, cause_counts_);
  registry.add("physics/steps", DType::kU64, {1}, &steps_submitted_);
  for (int field = 0; field < kSimFieldCount; ++field) {
    if (!views_[field].data) continue;
    registry.add(std::string("physics/field/") + sim_field_name(static_cast<SimField>(field)),
                 DType::kF32, {envs, views_[field].dim}, views_[field].data);
  }
}

void PhysicsMujoco::state_restored() {
  for (int env = 0; env < num_envs_; ++env) {
    const int32_t cause = cause_[static_cast<size_t>(env)];
    if (any_bad(qpos(env), model_->nq) || any_bad(qvel(env), model_->nv) || cause < kStable ||
        cause >= kCauseCount) {
      throw Failure(
          Code::kInvalid,
          "the checkpoint holds no usable physics state for environment " + std::to_string(env));
    }
  }
}

}  // namespace millrace

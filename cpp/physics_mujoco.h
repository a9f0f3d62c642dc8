// PhysicsMujoco: the SimBackend on libmujoco. The state of every environment is a slab of doubles
// (qpos, qvel, warm start, time, activations, gains); each worker owns one mjModel copy and one
// mjData and swaps slabs in and out, which is bit-exact with a plain mj_step loop on one mjData.
//
// The slab is saved right after the last mj_step of the tick; only then are the derived quantities
// refreshed and written to the float state fields, while the environment is still in cache
// (mj_kinematics normalises qpos in place, so the other order would change the next tick).
//
// An environment for which MuJoCo warned of a bad qpos, qvel, qacc or ctrl is not stepped until its
// reset; its slab and its fields keep the values of the tick before, kUnstable is 1.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "model_loader.h"
#include "sim_backend.h"
#include "worker_pool.h"

namespace millrace {

class PhysicsMujoco final : public SimBackend {
 public:
  // The pool must outlive this and may be shared; step and reset run loops in it. A device that
  // copies the state fields pins them.
  PhysicsMujoco(const SimSpec& spec, int num_envs, WorkerPool& pool, Backend* device = nullptr);

  SimCapabilities capabilities() const override;
  const SimModel& model() const override { return description_; }
  const FieldView* state_view() const override { return views_; }
  HostRange state_memory() const override { return fields_->range(); }
  Receipt step(const float* actions, uint64_t tick) override;
  void reset(const uint8_t* mask, const double* qpos, const double* qvel,
             const double* gains) override;
  void apply_velocity_change(const uint8_t* mask, const float* dv6) override;
  uint64_t unstable_count() const override;
  void register_state(StateRegistry& registry) override;
  void state_restored() override;

  // Unstable environments so far by what was bad: {"qpos", "qvel", "qacc", "ctrl"}.
  nlohmann::json unstable_causes() const;
  // The exact state of one environment, as the next tick starts from it.
  const double* qpos(int env) const { return &qpos_[row(env, model_->nq)]; }
  const double* qvel(int env) const { return &qvel_[row(env, model_->nv)]; }

 private:
  struct Worker {
    ModelPtr model;
    DataPtr data;
    double kp_factor;  // written into `model`
    double kd_factor;
  };
  enum Cause { kStable, kBadPosition, kBadVelocity, kBadAcceleration, kBadControl, kCauseCount };

  static size_t row(int env, int width) {
    return static_cast<size_t>(env) * static_cast<size_t>(width);
  }
  void allocate_fields(const SimSpec& spec, Backend* device);
  void load_slab(Worker& worker, int env) const;
  void save_slab(const Worker& worker, int env);
  void set_gains(Worker& worker, int env) const;
  static Cause warned(const mjData& data);
  Cause run_substeps(Worker& worker, int env, const float* action) const;
  void step_environment(Worker& worker, int env, const float* action);
  void reset_environment(Worker& worker, int env, const double* qpos, const double* qvel,
                         const double* gains);
  void write_foot_contact(const mjData& data, int env);
  void write_fields(Worker& worker, int env);
  void write_root_and_imu(const Worker& worker, int env);
  void write_bodies(const Worker& worker, int env);
  void put(SimField field, int env, int offset, const mjtNum* values, int count);

  WorkerPool& pool_;
  int num_envs_;
  int substeps_;
  double action_scale_;
  bool is_legged_;
  ModelPtr model_;
  ModelIndex index_;
  SimModel description_;
  std::vector<double> default_controls_;
  std::vector<uint8_t> is_servo_;
  std::vector<Worker> workers_;

  // Slabs, one row per environment.
  std::vector<double> qpos_, qvel_, warm_start_, time_, activation_, gains_;
  std::vector<int32_t> cause_;  // why it is not stepped; kStable while it is
  uint64_t cause_counts_[kCauseCount] = {};

  std::unique_ptr<HostBlock> fields_;
  FieldView views_[kSimFieldCount];
  uint64_t steps_submitted_ = 0;
  std::vector<int> reset_list_;
};

}  // namespace millrace

// SimBackend: who owns the physics. Nothing beyond this interface is probed by anyone.
//
// Calls come from one thread, the collector's, in this order per tick:
//   apply_velocity_change (optional) -> step -> [update step reads the state fields] -> reset
// step() writes the state fields of every environment; reset() those of the masked ones. Fields of
// an environment whose kUnstable is 1 after step() keep their values of the tick before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host_block.h"
#include "layout.h"
#include "receipt.h"
#include "state.h"
#include "state_registry.h"
#include "status.h"

namespace millrace {

// What a task asks of the physics: names are looked up in the robot file; all that are missing are
// reported in one Failure(kInvalid).
struct SimSpec {
  std::string model_path;       // an MJCF file; includes and meshes must stay inside its folder
  int substeps;                 // mj_steps per tick
  double tick_seconds;          // checked against the model's timestep x substeps
  double action_scale;          // ctrl = default ctrl + action_scale * action
  bool is_legged;               // root is a free joint; feet, imu sites and torso are required
  std::string torso_body;       // "torso_link"
  std::string pelvis_imu_site;  // "imu_in_pelvis"
  std::string torso_imu_site;   // "imu_in_torso"
  std::vector<std::string> foot_sites;   // "left_foot", "right_foot"
  std::vector<std::string> body_names;   // tracked bodies, in order; may be empty
  std::vector<std::string> joint_names;  // joints that must exist; may be empty
};

// Facts read from the robot file. Joints are the hinges and slides: the num_actions driven ones in
// actuator order, then those without a motor (the pole of a cartpole) in the file's order.
struct SimModel {
  int nq, nv, num_actions;
  std::vector<std::string> joint_names;
  std::vector<double> default_qpos;  // keyframe "stand", else qpos0; nq
  std::vector<double> default_joint_position;
  std::vector<double> joint_lower, joint_upper;  // +-1e10 without a limit
  std::vector<int> joint_qpos_address, joint_dof_address;
  std::string mujoco_version;
};

struct SimCapabilities {
  bool can_randomise_gains;
  bool is_host_owned;
  std::string name;
};

class SimBackend {
 public:
  virtual ~SimBackend() = default;
  virtual SimCapabilities capabilities() const = 0;
  virtual const SimModel& model() const = 0;
  // The kSimFieldCount views of the state fields (other members null).
  virtual const FieldView* state_view() const = 0;
  // The block that all state fields lie in.
  virtual HostRange state_memory() const = 0;
  // actions: num_envs x num_actions. Returns when every environment stepped.
  virtual Receipt step(const float* actions, uint64_t tick) = 0;
  // For each masked environment: qpos (nq), qvel (nv), gains {kp factor, kd factor}; rows of the
  // others are not read. All arrays have num_envs rows. Refreshes the masked state fields.
  virtual void reset(const uint8_t* mask, const double* qpos, const double* qvel,
                     const double* gains) = 0;
  // dv6: world-frame linear and angular velocity change of the root, num_envs x 6.
  virtual void apply_velocity_change(const uint8_t* mask, const float* dv6) = 0;
  // Environments ended by physics_unstable so far.
  virtual uint64_t unstable_count() const = 0;
  virtual void register_state(StateRegistry& registry) = 0;
  // After a checkpoint was written into the registered tensors.
  virtual void state_restored() = 0;
};

}  // namespace millrace

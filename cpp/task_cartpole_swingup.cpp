#include "task_cartpole_swingup.h"

namespace millrace {

TaskDefinition cartpole_swingup() {
  TaskDefinition task;
  task.name = "cartpole_swingup";
  task.algorithm = "fastsac";
  task.summary = "A cart on a rail swings a pole up and keeps it upright";
  task.model_file = "cartpole.xml";
  task.sim.substeps = 2;
  task.sim.tick_seconds = 0.02;
  task.sim.action_scale = 1.0;
  task.sim.is_legged = false;
  task.sim.body_names = {"pole"};
  task.nominal_joints = 2;
  task.nominal_actions = 1;
  task.max_steps = 500;
  task.gait_frequency_hz = 0;
  task.has_mirror = false;
  task.observations = {{"joint_position", 1, 0, 1},
                       {"pole_direction"},
                       {"joint_velocity", 1, 0, 1},
                       {"pole_velocity"}};
  task.critic = task.observations;
  task.rewards = {{"upright", 50.0}, {"alive", 0.0}};  // 50 = 1 / tick: 1 per upright tick
  task.terminations = {{"time_out", 0, true, true}};
  task.reset.qpos = {0, 3.14159265358979};  // the pole hangs
  task.reset.joint_position = 0.05;
  task.reset.joint_velocity = 0.05;
  return task;
}

}  // namespace millrace

#include "task_g1_walk_flat.h"

namespace millrace {

namespace {

// What the pose reward and the mirror map know by name; a user's robot file must have them all.
std::vector<std::string> joint_names() {
  std::vector<std::string> names;
  for (const char* side : {"left_", "right_"}) {
    for (const char* joint :
         {"hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll"}) {
      names.push_back(std::string(side) + joint + "_joint");
    }
  }
  for (const char* joint : {"waist_yaw", "waist_roll", "waist_pitch"}) {
    names.push_back(std::string(joint) + "_joint");
  }
  for (const char* side : {"left_", "right_"}) {
    for (const char* joint : {"shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow",
                              "wrist_roll", "wrist_pitch", "wrist_yaw"}) {
      names.push_back(std::string(side) + joint + "_joint");
    }
  }
  return names;
}

SimSpec g1_at_50_hz() {
  SimSpec sim;
  sim.substeps = 3;
  sim.tick_seconds = 0.02;
  sim.action_scale = 1.0;
  sim.is_legged = true;
  sim.torso_body = "torso_link";
  sim.pelvis_imu_site = "imu_in_pelvis";
  sim.torso_imu_site = "imu_in_torso";
  sim.foot_sites = {"left_foot", "right_foot"};
  sim.joint_names = joint_names();
  return sim;
}

std::vector<TermUse> rewards() {
  return {
      {"tracking_lin_vel", 2.0},
      {"tracking_ang_vel", 1.5},
      {"penalty_ang_vel_xy", -1.0},
      {"penalty_orientation", -10.0},
      {"penalty_action_rate", -4.0},
      {"pose", -0.5},
      {"penalty_feet_ori", -20.0},
      {"feet_phase", 5.0},
      {"alive", 10.0},
      // Here to be switched on by a weight.
      {"forward_progress", 0.0},
      {"under_speed", 0.0},
      {"lin_vel_z", 0.0},
      {"base_height", 0.0},
      {"upper_body_pose", 0.0},
      {"penalty_close_feet_xy", 0.0},
      {"feet_phase_contrast", 0.0},
      {"feet_phase_contact", 0.0},
      {"feet_double_stance", 0.0},
      {"feet_air_time", 0.0},
  };
}

}  // namespace

TaskDefinition g1_walk_flat() {
  TaskDefinition task;
  task.name = "g1_walk_flat";
  task.algorithm = "fastsac";
  task.summary = "Unitree G1 follows velocity commands on flat ground";
  task.model_file = "g1.xml";
  task.sim = g1_at_50_hz();
  task.nominal_joints = 29;
  task.nominal_actions = 29;
  task.max_steps = 1000;
  task.gait_frequency_hz = 1.5;
  task.has_mirror = true;
  task.observations = {{"gyro", 0.25},
                       {"projected_gravity"},
                       {"joint_position", 1.0, 0.01},
                       {"joint_velocity", 0.05, 0.1},
                       {"last_action"},
                       {"command"},
                       {"gait_phase"}};
  task.critic = task.observations;
  for (ObservationUse& use : task.critic) use.noise = 0;
  task.critic.push_back({"local_linear_velocity", 2.0});
  task.rewards = rewards();
  task.terminations = {{"tilt"}, {"low_root"}, {"time_out", 0, true, true}};
  task.commands = {{"velocity"}};
  task.events = {{"push"}, {"gains"}};
  task.curricula = {{"penalty"}};
  task.reset.has_free_root = true;
  task.reset.root_xy = 0.5;
  task.reset.root_yaw = 3.14159265358979;
  task.reset.root_velocity = 0.5;
  return task;
}

}  // namespace millrace

#include "task_g1_motion_tracking.h"

#include "task_g1_walk_flat.h"

namespace millrace {

namespace {

std::vector<std::string> tracked_bodies() {
  return {"pelvis",
          "left_hip_roll_link",
          "left_knee_link",
          "left_ankle_roll_link",
          "right_hip_roll_link",
          "right_knee_link",
          "right_ankle_roll_link",
          "torso_link",
          "left_shoulder_roll_link",
          "left_elbow_link",
          "left_wrist_yaw_link",
          "right_shoulder_roll_link",
          "right_elbow_link",
          "right_wrist_yaw_link"};
}

std::vector<ObservationUse> observations() {
  return {{"motion_joint_position"},   {"motion_joint_velocity"},         {"anchor_position"},
          {"anchor_orientation"},      {"local_linear_velocity", 1, 0.1}, {"gyro", 1, 0.2},
          {"joint_position", 1, 0.01}, {"joint_velocity", 1, 1.5},        {"last_action"}};
}

std::vector<TermUse> rewards() {
  return {
      {"motion_global_root_pos", 1.0},
      {"motion_global_root_ori", 0.5},
      {"motion_body_pos", 2.0},
      {"motion_body_ori", 1.0},
      {"motion_body_lin_vel", 1.0},
      {"motion_body_ang_vel", 1.0},
      {"action_rate_l2", -0.1},
      {"joint_limit", -2.0},
      {"undesired_contacts", -0.1},
      // Here to be switched on by a weight.
      {"motion_joint_pos", 0.0},
      {"motion_joint_vel", 0.0},
      {"alive", 0.0},
  };
}

// Every 1 to 3 s, within the ranges that velocities have at a reset.
TermUse push() {
  TermUse use = {"push"};
  use.parameters = {{"interval_seconds_low", 1}, {"interval_seconds_high", 3}, {"velocity", 0.5},
                    {"velocity_z", 0.2},         {"roll_pitch_rate", 0.52},    {"yaw_rate", 0.78}};
  return use;
}

}  // namespace

TaskDefinition g1_motion_tracking() {
  TaskDefinition task = g1_walk_flat();
  task.name = "g1_motion_tracking";
  task.algorithm = "flashsac";
  task.summary = "Unitree G1 follows a reference motion";
  task.sim.action_scale = 2.0;
  task.sim.body_names = tracked_bodies();
  task.max_steps = 500;
  task.gait_frequency_hz = 0;
  task.has_mirror = false;
  task.observations = observations();
  task.critic = task.observations;
  for (ObservationUse& use : task.critic) use.noise = 0;
  task.critic.push_back({"body_position"});
  task.critic.push_back({"body_orientation"});
  task.critic.push_back({"local_linear_velocity"});
  task.rewards = rewards();
  task.terminations = {{"anchor_height"},
                       {"anchor_tilt"},
                       {"end_effector_height"},
                       {"time_out", 0, true, true},
                       {"clip_end", 0, true, true}};
  task.commands = {{"motion"}};
  task.events = {push(), {"gains"}};
  task.curricula = {{"frame_sampler"}};
  task.anchor_body = "torso_link";
  task.end_effectors = {"left_ankle_roll_link", "right_ankle_roll_link", "left_wrist_yaw_link",
                        "right_wrist_yaw_link"};
  task.reset = {};
  return task;
}

}  // namespace millrace

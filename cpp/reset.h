// How an episode starts: pose, velocity and servo gains, a pure function of (seed, tick,
// environment) and, in motion tracking, of the reference frame. Draws come from the reset and gain
// streams; draws 16 to 18 of the reset stream belong to begin_episode (update_body.h). Any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "motion_view.h"

namespace millrace {

struct ResetSpec {
  std::vector<double> qpos;  // the start pose, before the random part
  int nv = 0;
  bool has_free_root = false;
  double root_xy = 0;         // m, half-width
  double root_yaw = 0;        // rad, half-width
  double root_velocity = 0;   // m/s and rad/s, half-width of all six
  double joint_position = 0;  // rad or m, half-width; joints are what follows the root
  double joint_velocity = 0;
  bool randomise_gains = false;
  double gain_low = 1, gain_high = 1;  // factors; kp and kd are drawn apart
};

// Half-widths around a reference frame: x, y, z, roll, pitch, yaw.
struct MotionResetSpec {
  double root_pose[6] = {};                    // m and rad
  double root_velocity[6] = {};                // m/s and rad/s, world axes
  double joint_position = 0;                   // rad, kept inside the joint's limits
  std::vector<int> qpos_address, dof_address;  // of the joints
  std::vector<double> joint_lower, joint_upper;
};

// 32-bit words that one start takes from the gain stream, and from the reset stream around a frame.
int gain_draws(const ResetSpec& spec);
int motion_start_draws(const MotionResetSpec& noise);

// Writes one environment's qpos (nq), qvel (nv) and gains {kp factor, kd factor}.
void draw_start(const ResetSpec& spec, uint64_t seed, uint64_t tick, int env, double* qpos,
                double* qvel, double* gains);

// The same from frame `frame` of a motion whose first body is the root: the root's noise turns it
// about its own place, in world axes, joint velocities are the reference's. `spec` gives the gains.
void draw_motion_start(const ResetSpec& spec, const MotionResetSpec& noise,
                       const MotionView& motion, int frame, uint64_t seed, uint64_t tick, int env,
                       double* qpos, double* qvel, double* gains);

}  // namespace millrace

// MotionFile: a recorded motion as its file has it, checked but not yet fitted to a robot or to the
// control rate (motion_clip.h does that). Two formats:
//   .npz  BeyondMimic's: fps, joint_pos (F, J), joint_vel, body_pos_w (F, B, 3), body_quat_w
//   (wxyz),
//         body_lin_vel_w, body_ang_vel_w; J and B in an order that the file does not say
//   .csv  7 + J columns at 30 frames a second: root x y z, root quaternion x y z w, joint angles
// Stateless; any thread.
#pragma once

#include <string>
#include <vector>

namespace millrace {

struct MotionFile {
  std::string path;
  double frames_per_second = 0;
  int frames = 0, joints = 0, bodies = 0;  // of a CSV: one body, the root
  bool has_velocities = false;             // false: those below are empty
  // Quaternions are w, x, y, z of length 1; world axes.
  std::vector<double> joint_position, joint_velocity;
  std::vector<double> body_position, body_quaternion, body_linear_velocity, body_angular_velocity;
};

// Throws Failure(kInvalid) with one line: the file, the array or line, what is wrong.
MotionFile read_motion_file(const std::string& path);

}  // namespace millrace

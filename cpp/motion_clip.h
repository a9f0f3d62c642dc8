// MotionClip: a motion ready to be followed: one frame per tick, joints in the robot's order, the
// task's tracked bodies, several recordings one behind the other. What the terms see is view().
// Built on the thread that opens a run; immutable afterwards, so that views stay valid.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "motion_file.h"
#include "motion_robot.h"
#include "motion_view.h"

namespace millrace {

struct MotionClip {
  std::string source;  // a path, or "built-in"
  double frames_per_second = 0;
  int frames = 0, joints = 0, bodies = 0;
  std::vector<float> joint_position, joint_velocity;
  std::vector<float> body_position, body_quaternion, body_linear_velocity, body_angular_velocity;
  std::vector<int> clip_end;  // per frame: the frame behind the last one of its recording

  MotionView view() const;
  // Of everything that view() shows: a checkpoint belongs to one motion.
  uint64_t digest() const;
  // {source, clips, frames, frames_per_second, seconds, joints, bodies}
  nlohmann::json describe() const;
};

// A recording at `frames_per_second`, its joints and bodies put into the robot's order. Positions
// are interpolated linearly, orientations along the shorter arc; what the file lacks is computed
// from the root and the joints. Throws Failure(kInvalid) if it does not fit the robot.
MotionClip fit_motion(const MotionFile& file, MotionRobot& robot, double frames_per_second);

// The motion that `path` names: a file, or a folder of .npz and .csv files in the order of their
// names. Empty: the built-in motion (motion_generator.h).
MotionClip load_motion(const std::string& path, MotionRobot& robot, double frames_per_second);

// As .npz, with the tracked bodies; read_motion_file gives back the same numbers.
void write_motion(const std::string& path, const MotionClip& clip);

}  // namespace millrace

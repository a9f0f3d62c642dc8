// The built-in motion: the robot shifts its weight from foot to foot, swings its arms and squats
// twice; 10 s, and its end joins its beginning. Made from the robot file alone, so that motion
// tracking runs without a download: joint angles are given as functions of time, and the root is
// where the feet then stay on the ground. Deterministic; any thread.
#pragma once

#include "motion_robot.h"

namespace millrace {

PoseTrack generate_motion(MotionRobot& robot, double frames_per_second);

}  // namespace millrace

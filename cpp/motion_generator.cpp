#include "motion_generator.h"

#include <cmath>

#include "elementary.h"

namespace millrace {

namespace {

constexpr double kSeconds = 10;
constexpr float kTurn = 6.2831853f;
// Whole cycles in the loop, and amplitudes in rad.
constexpr float kShiftCycles = 4, kShift = 0.07f;
constexpr float kSwingCycles = 8, kShoulderSwing = 0.35f, kElbowSwing = 0.2f;
constexpr float kSquatCycles = 2, kSquat = 0.35f;
constexpr float kWaistTurn = 0.15f;

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// The angle that a joint of this name has beside its default, at `t` of the loop (0 to 1).
double offset_of(const std::string& joint, float t) {
  const bool is_left = joint.compare(0, 5, "left_") == 0;
  const float side = is_left ? 1.0f : -1.0f;
  const float shift = kShift * mr_sin(kTurn * kShiftCycles * t);
  const float swing = mr_sin(kTurn * kSwingCycles * t);
  const float bend = 0.5f * (1.0f - mr_cos(kTurn * kSquatCycles * t));
  const float squat = kSquat * bend * bend;
  // Hip, knee and ankle add up to nothing: trunk and soles stay level.
  if (has(joint, "hip_pitch") || has(joint, "ankle_pitch")) return -squat;
  if (has(joint, "knee")) return 2.0f * squat;
  // Both legs lean alike, soles against it: the pelvis moves sideways.
  if (has(joint, "hip_roll")) return shift;
  if (has(joint, "ankle_roll")) return -shift;
  if (has(joint, "waist_yaw")) return kWaistTurn * swing;
  if (has(joint, "shoulder_pitch")) return side * kShoulderSwing * swing;
  if (has(joint, "elbow")) return side * kElbowSwing * swing;
  return 0;
}

}  // namespace

PoseTrack generate_motion(MotionRobot& robot, double frames_per_second) {
  const SimModel& model = robot.model();
  const double upright[4] = {1, 0, 0, 0};
  PoseTrack track;
  track.frames_per_second = frames_per_second;
  track.frames = static_cast<int>(std::lround(kSeconds * frames_per_second));
  double ground_middle[3], ground_height;  // of the feet in the default pose
  robot.place(model.default_qpos.data(), upright, model.default_joint_position.data());
  robot.feet(ground_middle, &ground_height);
  for (int frame = 0; frame < track.frames; ++frame) {
    const float t = static_cast<float>(frame) / static_cast<float>(track.frames);
    std::vector<double> joints = model.default_joint_position;
    for (size_t j = 0; j < joints.size(); ++j) joints[j] += offset_of(model.joint_names[j], t);
    double middle[3], height;
    robot.place(model.default_qpos.data(), upright, joints.data());
    robot.feet(middle, &height);
    const double* root = model.default_qpos.data();
    const double moved[3] = {root[0] + ground_middle[0] - middle[0],
                             root[1] + ground_middle[1] - middle[1],
                             root[2] + ground_height - height};
    track.root_position.insert(track.root_position.end(), moved, moved + 3);
    track.root_quaternion.insert(track.root_quaternion.end(), upright, upright + 4);
    track.joint_position.insert(track.joint_position.end(), joints.begin(), joints.end());
  }
  return track;
}

}  // namespace millrace

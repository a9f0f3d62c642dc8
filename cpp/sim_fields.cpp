#include "sim_fields.h"

#include <algorithm>

namespace millrace {

namespace {

const char* const kFieldNames[kSimFieldCount] = {"root_position",
                                                 "root_quaternion",
                                                 "root_linear_velocity",
                                                 "root_angular_velocity",
                                                 "joint_position",
                                                 "joint_velocity",
                                                 "gyro",
                                                 "local_linear_velocity",
                                                 "projected_gravity",
                                                 "foot_position",
                                                 "foot_quaternion",
                                                 "foot_contact",
                                                 "body_position",
                                                 "body_quaternion",
                                                 "body_linear_velocity",
                                                 "body_angular_velocity",
                                                 "unstable"};

}  // namespace

const char* sim_field_name(SimField field) { return kFieldNames[field]; }

std::array<int, kSimFieldCount> sim_field_dims(const SimSpec& spec, int joints) {
  const int bodies = static_cast<int>(spec.body_names.size());
  const int feet = static_cast<int>(spec.foot_sites.size());
  const int legged[] = {3, 4, 3, 3, joints, joints, 3, 3, 3, 3 * feet, 4 * feet, feet};
  std::array<int, kSimFieldCount> dims = {};
  if (spec.is_legged) std::copy(std::begin(legged), std::end(legged), dims.begin());
  dims[kJointPosition] = dims[kJointVelocity] = joints;
  dims[kBodyPosition] = dims[kBodyLinearVelocity] = dims[kBodyAngularVelocity] = 3 * bodies;
  dims[kBodyQuaternion] = 4 * bodies;
  dims[kUnstable] = 1;
  return dims;
}

}  // namespace millrace

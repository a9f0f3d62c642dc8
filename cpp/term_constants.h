// What every term may know beyond the state, and the two functions that most of them need.
// Freestanding; fixed for a run.
#pragma once

#include "elementary.h"
#include "portable.h"

namespace millrace {

enum { kMaxJoints = 64, kMaxBodies = 32, kMaxTermParams = 8 };

struct TermParams {
  float value[kMaxTermParams];
};

struct TermConstants {
  int num_joints;
  float tick_seconds;
  float default_joint_position[kMaxJoints];
  float joint_lower[kMaxJoints];  // limits; -+1e10 without one
  float joint_upper[kMaxJoints];
  float pose_weight[kMaxJoints];        // of the reward `pose`
  float upper_body_weight[kMaxJoints];  // 1 for waist and arms, of the reward `upper_body_pose`
  int anchor_body;                      // of the tracked bodies: where references are seen from
  int is_end_effector[kMaxBodies];      // of the tracked bodies: hands and feet
};

MR_FN float squared(float x) { return x * x; }
MR_FN float clamped(float x, float low, float high) { return mr_min(mr_max(x, low), high); }

}  // namespace millrace

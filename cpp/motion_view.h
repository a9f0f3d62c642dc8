// A motion to follow, as the terms see it: one reference frame per tick, any number of clips one
// behind the other, in arrays that their owner (motion_clip.h on the host) keeps alive and never
// changes. Freestanding: shared by every backend, passed by value.
//
// World axes; quaternions are w, x, y, z; bodies are the task's tracked bodies in their order.
#pragma once

#include "portable.h"

namespace millrace {

struct MotionView {
  MR_DEVICE const float* joint_position;   // frames x joints, rad
  MR_DEVICE const float* joint_velocity;   // frames x joints, rad/s
  MR_DEVICE const float* body_position;    // frames x bodies x 3, m
  MR_DEVICE const float* body_quaternion;  // frames x bodies x 4
  MR_DEVICE const float*
      body_linear_velocity;  // frames x bodies x 3, m/s, of the body frame's origin
  MR_DEVICE const float* body_angular_velocity;  // frames x bodies x 3, rad/s
  MR_DEVICE const int* clip_end;  // frames: the frame behind the last one of its clip
  int frames;                     // 0: the task follows no motion
  int joints;
  int bodies;
};

// The `dim` floats of body `body` in a per-body array at `frame`.
MR_FN MR_DEVICE const float* motion_body(MR_CONSTANT const MotionView& motion,
                                         MR_DEVICE const float* array, int frame, int body,
                                         int dim) {
  return array + ((u64)frame * (u64)motion.bodies + (u64)body) * (u64)dim;
}

MR_FN MR_DEVICE const float* motion_joints(MR_CONSTANT const MotionView& motion,
                                           MR_DEVICE const float* array, int frame) {
  return array + (u64)frame * (u64)motion.joints;
}

}  // namespace millrace

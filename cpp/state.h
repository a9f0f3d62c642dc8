// What one environment is made of, as the update step sees it: fields that the physics owner
// writes and fields that the update step owns. Freestanding: shared by every backend.
//
// Every field is one carrier of num_envs rows. A FieldView names a component without saying how
// the carrier lies: on the CPU rows are contiguous (component_stride 1), a device may transpose.
// Vectors are in world axes unless said otherwise; quaternions are w, x, y, z.
#pragma once

#include "motion_view.h"
#include "portable.h"

namespace millrace {

// Written by the physics owner after each step and reset. `B` tracked bodies, `J` joints.
enum SimField {
  kRootPosition,         // 3, m
  kRootQuaternion,       // 4
  kRootLinearVelocity,   // 3, m/s
  kRootAngularVelocity,  // 3, rad/s, in the root body's axes
  kJointPosition,        // J, rad or m
  kJointVelocity,        // J, rad/s or m/s
  kGyro,                 // 3, rad/s, torso IMU axes, clipped at +-34.9
  kLocalLinearVelocity,  // 3, m/s, pelvis IMU axes
  kProjectedGravity,     // 3, gravity direction in torso axes: -(R20, R21, R22)
  kFootPosition,         // 2 x 3, m, left then right site
  kFootQuaternion,       // 2 x 4
  kFootContact,          // 2, 1 if any contact with the ground in the last substep
  kBodyPosition,         // B x 3, m
  kBodyQuaternion,       // B x 4
  kBodyLinearVelocity,   // B x 3, m/s, of the body frame's origin
  kBodyAngularVelocity,  // B x 3, rad/s
  kUnstable,             // 1: 1 if MuJoCo warned of bad qpos, qvel or qacc in this tick
  kSimFieldCount
};

// Owned by the update step (float part).
enum EpisodeField {
  kAction,        // A, the action applied in this tick (as the policy gave it)
  kLastAction,    // A, the one before
  kCommand,       // 5: vx m/s, vy m/s, wz rad/s, target heading rad, 1 if told to stand still
  kGaitPhase,     // 2, rad in [0, 2 pi), left, right
  kReturn,        // 1, undiscounted sum of dt-scaled rewards of the running episode
  kPushVelocity,  // 6: pending world-frame velocity change (linear, angular), 0 when none
  kFootAirTime,   // 2, s since the foot last touched the ground, before this tick's contact
  kObservation,   // observation_dim, what the policy reads next (noise included)
  kCritic,        // critic_dim
  kReward,        // 1, of this tick
  kTermReward,    // one per reward term, weighted and dt-scaled, of this tick
  kEpisodeFieldCount
};

// Owned by the update step (integer part).
enum CounterField {
  kStep,            // ticks on the episode clock; starts at random in the first episode
  kTicksLived,      // ticks since reset
  kCommandTimer,    // ticks until the command is drawn again
  kPushTimer,       // ticks until the next push
  kFrame,           // current reference frame (motion tracking)
  kEpisode,         // episodes finished by this environment
  kDone,            // 1 if this tick ended the episode
  kTruncated,       // 1 if it ended by a time limit alone
  kEndReason,       // index into the task's termination list + 1; 0 = none
  kDesynchronised,  // 1 while in the first episode, whose start step was drawn: not in statistics
  kCounterFieldCount
};

struct FieldView {
  MR_DEVICE float* data;  // null when the task does not use the field
  int dim;                // components
  int component_stride;   // floats
  int env_stride;         // floats
};

struct CounterView {
  MR_DEVICE int* data;
  int env_stride;
};

// Everything that the update step reads and writes, by value.
struct StateView {
  FieldView sim[kSimFieldCount];
  FieldView episode[kEpisodeFieldCount];
  CounterView counter[kCounterFieldCount];
  MotionView motion;  // read only
};

MR_FN MR_DEVICE float& component(FieldView view, int env, int i) {
  return view.data[(u64)env * (u64)view.env_stride + (u64)i * (u64)view.component_stride];
}

MR_FN MR_DEVICE int& counter_of(CounterView view, int env) {
  return view.data[(u64)env * (u64)view.env_stride];
}

}  // namespace millrace

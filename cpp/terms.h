// Terms: pure functions of one environment. A term names the fields it reads in its arguments,
// takes its parameters as a struct of floats and returns a value; it cannot allocate, draw, wait or
// see another environment, so every term can run inside a captured device program. Freestanding
// C++14: the same source serves g++, nvcc and the Metal compiler. No double.
//
// To add one: write the function, give it an id and a case in the evaluator of its kind (below),
// describe it in term_table.cpp (the parameters in the order of its struct), and name it in a task.
#pragma once

#include "elementary.h"
#include "motion_terms.h"
#include "portable.h"
#include "state.h"
#include "term_constants.h"

namespace millrace {

// ---- observations: component i of the term, before noise and scale ----

enum ObservationTerm {
  kObserveGyro,
  kObserveProjectedGravity,
  kObserveJointPosition,
  kObserveJointVelocity,
  kObserveLastAction,
  kObserveCommand,
  kObserveGaitPhase,
  kObserveLocalLinearVelocity,
  kObservePoleDirection,
  kObservePoleVelocity,
  kObserveMotionJointPosition,
  kObserveMotionJointVelocity,
  kObserveAnchorPosition,
  kObserveAnchorOrientation,
  kObserveBodyPosition,
  kObserveBodyOrientation
};

// The pole's lean from its body: cos and sin of the angle from upright, positive towards +x.
MR_FN float pole_direction(FieldView body_quaternion, int env, int i) {
  const float w = component(body_quaternion, env, 0);
  const float x = component(body_quaternion, env, 1);
  const float y = component(body_quaternion, env, 2);
  const float z = component(body_quaternion, env, 3);
  return i == 0 ? 1.0f - 2.0f * (x * x + y * y) : 2.0f * (x * z + w * y);
}

MR_FN float observation_term(int term, MR_CONSTANT const TermConstants& constants,
                             MR_CONSTANT const StateView& state, int env, int i) {
  switch (term) {
    case kObserveGyro:
      return component(state.sim[kGyro], env, i);
    case kObserveProjectedGravity:
      return component(state.sim[kProjectedGravity], env, i);
    case kObserveJointPosition:
      return component(state.sim[kJointPosition], env, i) - constants.default_joint_position[i];
    case kObserveJointVelocity:
      return component(state.sim[kJointVelocity], env, i);
    case kObserveLastAction:
      return component(state.episode[kAction], env, i);
    case kObserveCommand:
      return component(state.episode[kCommand], env, i);
    case kObserveGaitPhase:
      return component(state.episode[kGaitPhase], env, i);
    case kObserveLocalLinearVelocity:
      return component(state.sim[kLocalLinearVelocity], env, i);
    case kObservePoleDirection:
      return pole_direction(state.sim[kBodyQuaternion], env, i);
    case kObservePoleVelocity:
      return component(state.sim[kBodyAngularVelocity], env, 1);
    case kObserveMotionJointPosition:
      return motion_joints(state.motion, state.motion.joint_position,
                           counter_of(state.counter[kFrame], env))[i];
    case kObserveMotionJointVelocity:
      return motion_joints(state.motion, state.motion.joint_velocity,
                           counter_of(state.counter[kFrame], env))[i];
    case kObserveAnchorPosition:
      return anchor_position(state, env, constants.anchor_body, i);
    case kObserveAnchorOrientation:
      return anchor_orientation(state, env, constants.anchor_body, i);
    case kObserveBodyPosition:
      return body_position_in_anchor(state.sim[kBodyPosition], state.sim[kBodyQuaternion], env,
                                     constants.anchor_body, i);
    case kObserveBodyOrientation:
      return body_orientation_in_anchor(state.sim[kBodyQuaternion], env, constants.anchor_body, i);
  }
  return 0.0f;
}

// ---- rewards: before weight and tick length ----

enum RewardTerm {
  kRewardTrackingLinVel,
  kRewardTrackingAngVel,
  kRewardPenaltyAngVelXy,
  kRewardPenaltyOrientation,
  kRewardPenaltyActionRate,
  kRewardPose,
  kRewardPenaltyFeetOri,
  kRewardFeetPhase,
  kRewardAlive,
  kRewardForwardProgress,
  kRewardUnderSpeed,
  kRewardLinVelZ,
  kRewardBaseHeight,
  kRewardUpperBodyPose,
  kRewardPenaltyCloseFeetXy,
  kRewardFeetPhaseContrast,
  kRewardFeetPhaseContact,
  kRewardFeetDoubleStance,
  kRewardFeetAirTime,
  kRewardUpright,
  kRewardMotionRootPosition,
  kRewardMotionRootOrientation,
  kRewardMotionBodyPosition,
  kRewardMotionBodyOrientation,
  kRewardMotionBodyLinearVelocity,
  kRewardMotionBodyAngularVelocity,
  kRewardMotionJointPosition,
  kRewardMotionJointVelocity,
  kRewardActionRateL2,
  kRewardJointLimit,
  kRewardUndesiredContacts
};

struct TrackingParams {
  float scale;  // the squared error at which the reward is 1/e
};

MR_FN float tracking_lin_vel(FieldView command, FieldView velocity, int env, TrackingParams p) {
  const float error_x = component(command, env, 0) - component(velocity, env, 0);
  const float error_y = component(command, env, 1) - component(velocity, env, 1);
  return mr_exp(-(squared(error_x) + squared(error_y)) / p.scale);
}

MR_FN float tracking_ang_vel(FieldView command, FieldView gyro, int env, TrackingParams p) {
  return mr_exp(-squared(component(command, env, 2) - component(gyro, env, 2)) / p.scale);
}

// x^2 + y^2 of a vector: roll and pitch rates of the gyro, tilt of the gravity direction.
MR_FN float horizontal_square(FieldView vector, int env) {
  return squared(component(vector, env, 0)) + squared(component(vector, env, 1));
}

MR_FN float penalty_action_rate(FieldView action, FieldView last_action, int env) {
  float sum = 0.0f;
  for (int i = 0; i < action.dim; ++i) {
    sum += squared(component(action, env, i) - component(last_action, env, i));
  }
  return sum;
}

MR_FN float weighted_pose(FieldView joint_position, int env,
                          MR_CONSTANT const float* default_position,
                          MR_CONSTANT const float* weight) {
  float sum = 0.0f;
  for (int i = 0; i < joint_position.dim; ++i) {
    sum += weight[i] * squared(component(joint_position, env, i) - default_position[i]);
  }
  return sum;
}

// Sine-squared tilt of both feet, small-angle form: x^2 + y^2 of the foot quaternions.
MR_FN float penalty_feet_ori(FieldView foot_quaternion, int env) {
  float sum = 0.0f;
  for (int foot = 0; foot < 2; ++foot) {
    sum += squared(component(foot_quaternion, env, 4 * foot + 1)) +
           squared(component(foot_quaternion, env, 4 * foot + 2));
  }
  return sum;
}

// Smooth step from 0 at t = 0 to 1 at t = 1 (cubic Bezier with flat ends).
MR_FN float smooth_step(float t) { return t * t * t + 3.0f * t * t * (1.0f - t); }

// The height a foot should have: up and down again in one gait cycle, 0 at phase -pi.
MR_FN float gait_height(float phase, float swing_height) {
  const float pi = 3.14159265358979f;
  const float cycle = mr_fmod(phase + pi, 2.0f * pi) / (2.0f * pi);
  return cycle <= 0.5f ? swing_height * smooth_step(2.0f * cycle)
                       : swing_height * (1.0f - smooth_step(2.0f * cycle - 1.0f));
}

struct FeetPhaseParams {
  float scale;         // m^2, the squared height error at which the reward is 1/e
  float swing_height;  // m
  float gate_speed;    // m/s, no reward below this forward speed (0: always)
};

MR_FN float feet_phase(FieldView phase, FieldView foot_position, FieldView velocity, int env,
                       FeetPhaseParams p) {
  float error = 0.0f;
  for (int foot = 0; foot < 2; ++foot) {
    error += squared(component(foot_position, env, 3 * foot + 2) -
                     gait_height(component(phase, env, foot), p.swing_height));
  }
  const float gate = mr_max(component(velocity, env, 0), 0.0f) >= p.gate_speed ? 1.0f : 0.0f;
  return gate * mr_exp(-error / p.scale);
}

// Forward speed, counted up to the commanded one.
MR_FN float forward_progress(FieldView command, FieldView velocity, int env) {
  return clamped(component(velocity, env, 0), 0.0f, mr_max(component(command, env, 0), 0.0f));
}

// By how much the robot is slower than commanded, along the commanded x direction.
MR_FN float under_speed(FieldView command, FieldView velocity, int env) {
  const float wanted = component(command, env, 0);
  const float along = wanted < 0.0f ? -component(velocity, env, 0) : component(velocity, env, 0);
  return mr_max(mr_abs(wanted) - along, 0.0f);
}

struct BaseHeightParams {
  float target;  // m
};

MR_FN float base_height(FieldView root_position, int env, BaseHeightParams p) {
  return squared(component(root_position, env, 2) - p.target);
}

struct CloseFeetParams {
  float distance;  // m
};

MR_FN float penalty_close_feet_xy(FieldView foot_position, int env, CloseFeetParams p) {
  const float x = component(foot_position, env, 0) - component(foot_position, env, 3);
  const float y = component(foot_position, env, 1) - component(foot_position, env, 4);
  const float gap = mr_sqrt(x * x + y * y) - p.distance;
  return gap < 0.0f ? gap * gap : 0.0f;
}

struct FeetContrastParams {
  float scale;         // m^2
  float swing_height;  // m
};

// Like feet_phase, of the height difference left - right: which foot is up, not how high both are.
MR_FN float feet_phase_contrast(FieldView phase, FieldView foot_position, int env,
                                FeetContrastParams p) {
  const float wanted = gait_height(component(phase, env, 0), p.swing_height) -
                       gait_height(component(phase, env, 1), p.swing_height);
  const float actual = component(foot_position, env, 2) - component(foot_position, env, 5);
  return mr_exp(-squared(actual - wanted) / p.scale);
}

struct FeetContactParams {
  float swing_height;   // m
  float stance_height;  // m, below this gait height the foot should touch the ground
};

// Share of feet whose contact agrees with the gait.
MR_FN float feet_phase_contact(FieldView phase, FieldView foot_contact, int env,
                               FeetContactParams p) {
  float agreeing = 0.0f;
  for (int foot = 0; foot < 2; ++foot) {
    const bool stance = gait_height(component(phase, env, foot), p.swing_height) < p.stance_height;
    const bool touches = component(foot_contact, env, foot) > 0.5f;
    agreeing += stance == touches ? 0.5f : 0.0f;
  }
  return agreeing;
}

struct MovingParams {
  float command_speed;  // m/s, counts only when told to move at least this fast
};

MR_FN bool told_to_move(FieldView command, int env, float speed) {
  return horizontal_square(command, env) >= squared(speed);
}

MR_FN float feet_double_stance(FieldView command, FieldView foot_contact, int env, MovingParams p) {
  const bool both =
      component(foot_contact, env, 0) > 0.5f && component(foot_contact, env, 1) > 0.5f;
  return both && told_to_move(command, env, p.command_speed) ? 1.0f : 0.0f;
}

struct AirTimeParams {
  float threshold_seconds;  // s, longer swings are rewarded, shorter ones cost
  float command_speed;      // m/s
};

// At each touch-down: how much longer than the threshold the foot was in the air.
MR_FN float feet_air_time(FieldView command, FieldView air_time, FieldView foot_contact, int env,
                          AirTimeParams p) {
  float sum = 0.0f;
  for (int foot = 0; foot < 2; ++foot) {
    const float seconds = component(air_time, env, foot);
    if (component(foot_contact, env, foot) > 0.5f && seconds > 0.0f) {
      sum += seconds - p.threshold_seconds;
    }
  }
  return told_to_move(command, env, p.command_speed) ? sum : 0.0f;
}

MR_FN float upright(FieldView body_quaternion, int env) {
  return 0.5f * (1.0f + pole_direction(body_quaternion, env, 0));
}

MR_FN float motion_reward_term(int term, MR_CONSTANT const TermParams& params,
                               MR_CONSTANT const TermConstants& constants,
                               MR_CONSTANT const StateView& state, int env) {
  MR_CONSTANT const MotionView& motion = state.motion;
  MR_CONSTANT const FieldView* sim = state.sim;
  const int anchor = constants.anchor_body;
  const DeviationParams p = {params.value[0]};
  switch (term) {
    case kRewardMotionRootPosition:
      return motion_root_position(state, env, anchor, p);
    case kRewardMotionRootOrientation:
      return motion_root_orientation(state, env, anchor, p);
    case kRewardMotionBodyPosition:
      return motion_body_positions(state, env, anchor, p);
    case kRewardMotionBodyOrientation:
      return motion_body_orientations(state, env, anchor, p);
    case kRewardMotionBodyLinearVelocity:
      return motion_body_velocities(state, motion.body_linear_velocity, sim[kBodyLinearVelocity],
                                    env, p);
    case kRewardMotionBodyAngularVelocity:
      return motion_body_velocities(state, motion.body_angular_velocity, sim[kBodyAngularVelocity],
                                    env, p);
    case kRewardMotionJointPosition:
      return motion_joint_values(state, motion.joint_position, sim[kJointPosition], env, p);
    case kRewardMotionJointVelocity:
      return motion_joint_values(state, motion.joint_velocity, sim[kJointVelocity], env, p);
  }
  return 0.0f;
}

MR_FN float reward_term(int term, MR_CONSTANT const TermParams& params,
                        MR_CONSTANT const TermConstants& constants,
                        MR_CONSTANT const StateView& state, int env) {
  MR_CONSTANT const FieldView* sim = state.sim;
  MR_CONSTANT const FieldView* episode = state.episode;
  MR_CONSTANT const float* p = params.value;
  switch (term) {
    case kRewardTrackingLinVel:
      return tracking_lin_vel(episode[kCommand], sim[kLocalLinearVelocity], env, {p[0]});
    case kRewardTrackingAngVel:
      return tracking_ang_vel(episode[kCommand], sim[kGyro], env, {p[0]});
    case kRewardPenaltyAngVelXy:
      return horizontal_square(sim[kGyro], env);
    case kRewardPenaltyOrientation:
      return horizontal_square(sim[kProjectedGravity], env);
    case kRewardPenaltyActionRate:
      return penalty_action_rate(episode[kAction], episode[kLastAction], env);
    case kRewardPose:
      return weighted_pose(sim[kJointPosition], env, constants.default_joint_position,
                           constants.pose_weight);
    case kRewardPenaltyFeetOri:
      return penalty_feet_ori(sim[kFootQuaternion], env);
    case kRewardFeetPhase:
      return feet_phase(episode[kGaitPhase], sim[kFootPosition], sim[kLocalLinearVelocity], env,
                        {p[0], p[1], p[2]});
    case kRewardAlive:
      return 1.0f;
    case kRewardForwardProgress:
      return forward_progress(episode[kCommand], sim[kLocalLinearVelocity], env);
    case kRewardUnderSpeed:
      return under_speed(episode[kCommand], sim[kLocalLinearVelocity], env);
    case kRewardLinVelZ:
      return squared(component(sim[kLocalLinearVelocity], env, 2));
    case kRewardBaseHeight:
      return base_height(sim[kRootPosition], env, {p[0]});
    case kRewardUpperBodyPose:
      return weighted_pose(sim[kJointPosition], env, constants.default_joint_position,
                           constants.upper_body_weight);
    case kRewardPenaltyCloseFeetXy:
      return penalty_close_feet_xy(sim[kFootPosition], env, {p[0]});
    case kRewardFeetPhaseContrast:
      return feet_phase_contrast(episode[kGaitPhase], sim[kFootPosition], env, {p[0], p[1]});
    case kRewardFeetPhaseContact:
      return feet_phase_contact(episode[kGaitPhase], sim[kFootContact], env, {p[0], p[1]});
    case kRewardFeetDoubleStance:
      return feet_double_stance(episode[kCommand], sim[kFootContact], env, {p[0]});
    case kRewardFeetAirTime:
      return feet_air_time(episode[kCommand], episode[kFootAirTime], sim[kFootContact], env,
                           {p[0], p[1]});
    case kRewardUpright:
      return upright(sim[kBodyQuaternion], env);
    case kRewardActionRateL2:
      return penalty_action_rate(episode[kAction], episode[kLastAction], env);
    case kRewardJointLimit:
      return joint_limit(sim[kJointPosition], env, constants.joint_lower, constants.joint_upper);
    case kRewardUndesiredContacts:
      return undesired_contacts(sim[kBodyPosition], env, constants.is_end_effector, {p[0]});
  }
  return motion_reward_term(term, params, constants, state, env);
}

// ---- terminations ----

enum TerminationTerm {
  kTerminateTilt,
  kTerminateLowRoot,
  kTerminateTimeOut,
  kTerminatePhysicsUnstable,  // decided by the physics owner's flag, before all others
  kTerminateNonFinite,        // decided by the verdict, after all others
  kTerminateAnchorHeight,
  kTerminateAnchorTilt,
  kTerminateEndEffectorHeight,
  kTerminateClipEnd
};

struct TiltParams {
  float limit_degrees;
};

// The torso's up axis in world z is minus the z component of gravity in torso axes.
MR_FN bool tilted(FieldView projected_gravity, int env, TiltParams p) {
  const float up = clamped(-component(projected_gravity, env, 2), -1.0f, 1.0f);
  return mr_acos(up) > p.limit_degrees * 0.0174532925199433f;
}

struct LowRootParams {
  float height;  // m
};

MR_FN bool low_root(FieldView root_position, int env, LowRootParams p) {
  return component(root_position, env, 2) < p.height;
}

MR_FN bool termination_term(int term, MR_CONSTANT const TermParams& params,
                            MR_CONSTANT const TermConstants& constants,
                            MR_CONSTANT const StateView& state, int env, int max_steps) {
  switch (term) {
    case kTerminateTilt:
      return tilted(state.sim[kProjectedGravity], env, {params.value[0]});
    case kTerminateLowRoot:
      return low_root(state.sim[kRootPosition], env, {params.value[0]});
    case kTerminateTimeOut:
      return counter_of(state.counter[kStep], env) >= max_steps;
    case kTerminatePhysicsUnstable:
      return component(state.sim[kUnstable], env, 0) > 0.5f;
    case kTerminateAnchorHeight:
      return anchor_height_lost(state, env, constants.anchor_body, {params.value[0]});
    case kTerminateAnchorTilt:
      return anchor_tilt_lost(state, env, constants.anchor_body, {params.value[0]});
    case kTerminateEndEffectorHeight:
      return end_effector_height_lost(state, env, constants.is_end_effector, {params.value[0]});
    case kTerminateClipEnd:
      return clip_ended(state, env);
  }
  return false;
}

}  // namespace millrace

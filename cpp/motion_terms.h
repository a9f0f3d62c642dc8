// Terms of motion tracking: how far one environment is from its reference frame. The robot's
// tracked bodies are compared with the reference's; what a policy cannot help, heading and
// horizontal place of the whole robot, is taken out of the relative terms: the reference is turned
// and moved there.
//
// Freestanding C++14, no double; same rules as terms.h, whose evaluators call these.
#pragma once

#include "elementary.h"
#include "motion_view.h"
#include "portable.h"
#include "state.h"
#include "term_constants.h"

namespace millrace {

struct Vector3 {
  float x, y, z;
};

struct Quaternion {
  float w, x, y, z;
};

MR_FN Vector3 vector_at(MR_DEVICE const float* v) {
  const Vector3 result = {v[0], v[1], v[2]};
  return result;
}

MR_FN Quaternion quaternion_at(MR_DEVICE const float* q) {
  const Quaternion result = {q[0], q[1], q[2], q[3]};
  return result;
}

MR_FN Vector3 body_vector(FieldView field, int env, int body) {
  const Vector3 result = {component(field, env, 3 * body), component(field, env, 3 * body + 1),
                          component(field, env, 3 * body + 2)};
  return result;
}

MR_FN Quaternion body_quaternion(FieldView field, int env, int body) {
  const Quaternion result = {component(field, env, 4 * body), component(field, env, 4 * body + 1),
                             component(field, env, 4 * body + 2),
                             component(field, env, 4 * body + 3)};
  return result;
}

MR_FN Vector3 difference(Vector3 a, Vector3 b) {
  const Vector3 result = {a.x - b.x, a.y - b.y, a.z - b.z};
  return result;
}

MR_FN float squared_length(Vector3 v) { return v.x * v.x + v.y * v.y + v.z * v.z; }

MR_FN Quaternion conjugate(Quaternion q) {
  const Quaternion result = {q.w, -q.x, -q.y, -q.z};
  return result;
}

MR_FN Quaternion product(Quaternion a, Quaternion b) {
  const Quaternion result = {
      a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
      a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
  return result;
}

// Element (row, column) of the rotation matrix of a unit quaternion.
MR_FN float rotation_element(Quaternion q, int row, int column) {
  const float v[3] = {q.x, q.y, q.z};
  if (row == column) {
    const float a = v[(row + 1) % 3];
    const float b = v[(row + 2) % 3];
    return 1.0f - 2.0f * (a * a + b * b);
  }
  const float turn = q.w * v[3 - row - column];
  return 2.0f * (v[row] * v[column] + ((column - row + 3) % 3 == 1 ? -turn : turn));
}

// Component i of `v`, given in world axes, in the axes that q turns the world to.
MR_FN float local_component(Quaternion q, Vector3 v, int i) {
  return rotation_element(q, 0, i) * v.x + rotation_element(q, 1, i) * v.y +
         rotation_element(q, 2, i) * v.z;
}

// The first two columns of the rotation from `frame` to q, rows first: R00 R01 R10 R11 R20 R21.
MR_FN float orientation_component(Quaternion frame, Quaternion q, int i) {
  return rotation_element(product(conjugate(frame), q), i >> 1, i & 1);
}

// Square of the angle between two orientations. From the sine where it is small: the cosine of a
// small angle has lost it.
MR_FN float squared_angle(Quaternion a, Quaternion b) {
  const Quaternion d = product(conjugate(a), b);
  const float sine_square = d.x * d.x + d.y * d.y + d.z * d.z;
  const float half_angle = sine_square < 0.25f ? mr_asin_reduced(mr_sqrt(sine_square), sine_square)
                                               : mr_acos(mr_abs(d.w));
  return 4.0f * half_angle * half_angle;
}

// ---- the reference of one environment ----

MR_FN Vector3 reference_vector(MR_CONSTANT const StateView& state, MR_DEVICE const float* array,
                               int env, int body) {
  const int frame = counter_of(state.counter[kFrame], env);
  return vector_at(motion_body(state.motion, array, frame, body, 3));
}

MR_FN Quaternion reference_quaternion(MR_CONSTANT const StateView& state, int env, int body) {
  const int frame = counter_of(state.counter[kFrame], env);
  return quaternion_at(motion_body(state.motion, state.motion.body_quaternion, frame, body, 4));
}

// The turn about the vertical and the two anchors that bring the reference to the robot.
struct Alignment {
  Quaternion turn;
  float cosine, sine;  // of the turn
  Vector3 reference;   // anchor of the reference
  Vector3 robot;       // anchor of the robot, at the reference's height
};

MR_FN Alignment align_reference(MR_CONSTANT const StateView& state, int env, int anchor) {
  const Quaternion q = product(body_quaternion(state.sim[kBodyQuaternion], env, anchor),
                               conjugate(reference_quaternion(state, env, anchor)));
  const float forward_x = rotation_element(q, 0, 0);
  const float forward_y = rotation_element(q, 1, 0);
  const float length = mr_sqrt(forward_x * forward_x + forward_y * forward_y);
  Alignment align;
  align.cosine = length < 1e-6f ? 1.0f : forward_x / length;
  align.sine = length < 1e-6f ? 0.0f : forward_y / length;
  // The half angle, from whichever of its sine and cosine is the larger.
  const float larger = mr_sqrt(0.5f * (1.0f + mr_abs(align.cosine)));
  const float smaller = 0.5f * mr_abs(align.sine) / larger;
  const float half_cosine = align.cosine < 0.0f ? smaller : larger;
  const float half_sine = align.cosine < 0.0f ? larger : smaller;
  align.turn = {half_cosine, 0.0f, 0.0f, align.sine < 0.0f ? -half_sine : half_sine};
  align.reference = reference_vector(state, state.motion.body_position, env, anchor);
  align.robot = body_vector(state.sim[kBodyPosition], env, anchor);
  align.robot.z = align.reference.z;
  return align;
}

MR_FN Vector3 aligned_position(MR_THREAD const Alignment& align, Vector3 position) {
  const Vector3 v = difference(position, align.reference);
  const Vector3 result = {align.cosine * v.x - align.sine * v.y + align.robot.x,
                          align.sine * v.x + align.cosine * v.y + align.robot.y,
                          v.z + align.robot.z};
  return result;
}

// ---- observations: component i ----

// The reference's anchor, seen from the robot's.
MR_FN float anchor_position(MR_CONSTANT const StateView& state, int env, int anchor, int i) {
  const Vector3 offset =
      difference(reference_vector(state, state.motion.body_position, env, anchor),
                 body_vector(state.sim[kBodyPosition], env, anchor));
  return local_component(body_quaternion(state.sim[kBodyQuaternion], env, anchor), offset, i);
}

MR_FN float anchor_orientation(MR_CONSTANT const StateView& state, int env, int anchor, int i) {
  return orientation_component(body_quaternion(state.sim[kBodyQuaternion], env, anchor),
                               reference_quaternion(state, env, anchor), i);
}

// The robot's bodies, seen from its anchor: three components each.
MR_FN float body_position_in_anchor(FieldView position, FieldView quaternion, int env, int anchor,
                                    int i) {
  const Vector3 offset =
      difference(body_vector(position, env, i / 3), body_vector(position, env, anchor));
  return local_component(body_quaternion(quaternion, env, anchor), offset, i % 3);
}

// Six components each.
MR_FN float body_orientation_in_anchor(FieldView quaternion, int env, int anchor, int i) {
  return orientation_component(body_quaternion(quaternion, env, anchor),
                               body_quaternion(quaternion, env, i / 6), i % 6);
}

// ---- rewards ----

struct DeviationParams {
  float scale;  // the deviation at which the reward is 1/e
};

MR_FN float closeness(float squared_deviation, DeviationParams p) {
  return mr_exp(-squared_deviation / (p.scale * p.scale));
}

MR_FN float motion_root_position(MR_CONSTANT const StateView& state, int env, int anchor,
                                 DeviationParams p) {
  const Vector3 error = difference(reference_vector(state, state.motion.body_position, env, anchor),
                                   body_vector(state.sim[kBodyPosition], env, anchor));
  return closeness(squared_length(error), p);
}

MR_FN float motion_root_orientation(MR_CONSTANT const StateView& state, int env, int anchor,
                                    DeviationParams p) {
  return closeness(squared_angle(reference_quaternion(state, env, anchor),
                                 body_quaternion(state.sim[kBodyQuaternion], env, anchor)),
                   p);
}

MR_FN float motion_body_positions(MR_CONSTANT const StateView& state, int env, int anchor,
                                  DeviationParams p) {
  const Alignment align = align_reference(state, env, anchor);
  float sum = 0.0f;
  for (int body = 0; body < state.motion.bodies; ++body) {
    const Vector3 target =
        aligned_position(align, reference_vector(state, state.motion.body_position, env, body));
    sum += squared_length(difference(target, body_vector(state.sim[kBodyPosition], env, body)));
  }
  return closeness(sum / (float)state.motion.bodies, p);
}

MR_FN float motion_body_orientations(MR_CONSTANT const StateView& state, int env, int anchor,
                                     DeviationParams p) {
  const Alignment align = align_reference(state, env, anchor);
  float sum = 0.0f;
  for (int body = 0; body < state.motion.bodies; ++body) {
    const Quaternion target = product(align.turn, reference_quaternion(state, env, body));
    sum += squared_angle(target, body_quaternion(state.sim[kBodyQuaternion], env, body));
  }
  return closeness(sum / (float)state.motion.bodies, p);
}

// Linear or angular velocities of all bodies, in world axes.
MR_FN float motion_body_velocities(MR_CONSTANT const StateView& state,
                                   MR_DEVICE const float* reference, FieldView robot, int env,
                                   DeviationParams p) {
  float sum = 0.0f;
  for (int body = 0; body < state.motion.bodies; ++body) {
    sum += squared_length(
        difference(reference_vector(state, reference, env, body), body_vector(robot, env, body)));
  }
  return closeness(sum / (float)state.motion.bodies, p);
}

// Joint positions or velocities.
MR_FN float motion_joint_values(MR_CONSTANT const StateView& state,
                                MR_DEVICE const float* reference, FieldView robot, int env,
                                DeviationParams p) {
  MR_DEVICE const float* wanted =
      motion_joints(state.motion, reference, counter_of(state.counter[kFrame], env));
  float sum = 0.0f;
  for (int j = 0; j < state.motion.joints; ++j) {
    sum += squared(wanted[j] - component(robot, env, j));
  }
  return closeness(sum / (float)state.motion.joints, p);
}

// Squared violation of the joint limits.
MR_FN float joint_limit(FieldView joint_position, int env, MR_CONSTANT const float* lower,
                        MR_CONSTANT const float* upper) {
  float sum = 0.0f;
  for (int j = 0; j < joint_position.dim; ++j) {
    const float q = component(joint_position, env, j);
    sum += squared(mr_max(lower[j] - q, 0.0f)) + squared(mr_max(q - upper[j], 0.0f));
  }
  return sum;
}

struct UndesiredContactParams {
  float height;  // m
};

// How many tracked bodies that are neither hand nor foot are near the ground.
MR_FN float undesired_contacts(FieldView body_position, int env,
                               MR_CONSTANT const int* is_end_effector, UndesiredContactParams p) {
  float count = 0.0f;
  for (int body = 0; 3 * body < body_position.dim; ++body) {
    const bool is_low = component(body_position, env, 3 * body + 2) < p.height;
    count += is_low && !is_end_effector[body] ? 1.0f : 0.0f;
  }
  return count;
}

// ---- terminations ----

struct DistanceParams {
  float limit;
};

MR_FN bool anchor_height_lost(MR_CONSTANT const StateView& state, int env, int anchor,
                              DistanceParams p) {
  const float wanted = reference_vector(state, state.motion.body_position, env, anchor).z;
  return mr_abs(wanted - component(state.sim[kBodyPosition], env, 3 * anchor + 2)) > p.limit;
}

// Compares how much of gravity is along the anchor's own vertical.
MR_FN bool anchor_tilt_lost(MR_CONSTANT const StateView& state, int env, int anchor,
                            DistanceParams p) {
  const float wanted = rotation_element(reference_quaternion(state, env, anchor), 2, 2);
  const float actual =
      rotation_element(body_quaternion(state.sim[kBodyQuaternion], env, anchor), 2, 2);
  return mr_abs(wanted - actual) > p.limit;
}

// The aligned reference keeps its own height, so no alignment is needed.
MR_FN bool end_effector_height_lost(MR_CONSTANT const StateView& state, int env,
                                    MR_CONSTANT const int* is_end_effector, DistanceParams p) {
  for (int body = 0; body < state.motion.bodies; ++body) {
    const float wanted = reference_vector(state, state.motion.body_position, env, body).z;
    const float actual = component(state.sim[kBodyPosition], env, 3 * body + 2);
    if (is_end_effector[body] && mr_abs(wanted - actual) > p.limit) {
      return true;
    }
  }
  return false;
}

// There is no reference for the next tick.
MR_FN bool clip_ended(MR_CONSTANT const StateView& state, int env) {
  const int frame = counter_of(state.counter[kFrame], env);
  return frame + 1 >= state.motion.clip_end[frame];
}

}  // namespace millrace

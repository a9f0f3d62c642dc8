#include "reset.h"

#include <algorithm>
#include <cmath>

#include "philox.h"

namespace millrace {

namespace {

constexpr u32 kRootPoseDraw = 0;
constexpr u32 kRootVelocityDraw = 6;
constexpr u32 kJointPositionDraw = 32;
constexpr u32 kJointVelocityDraw = 128;

double symmetric(RandomSource source, u32 draw, double half_width) {
  return half_width * (2.0 * unit_float(random_u32(source, draw)) - 1.0);
}

// Turns the root about the world's vertical: q := (cos, 0, 0, sin) * q.
void turn_root(double yaw, double* q) {
  const double c = std::cos(0.5 * yaw);
  const double s = std::sin(0.5 * yaw);
  const double turned[4] = {c * q[0] - s * q[3], c * q[1] - s * q[2], c * q[2] + s * q[1],
                            c * q[3] + s * q[0]};
  std::copy(turned, turned + 4, q);
}

// Roll, pitch, yaw about the world's axes, one after the other: yaw * pitch * roll.
void quaternion_of(const double* angles, double* q) {
  const double cr = std::cos(0.5 * angles[0]), sr = std::sin(0.5 * angles[0]);
  const double cp = std::cos(0.5 * angles[1]), sp = std::sin(0.5 * angles[1]);
  const double cy = std::cos(0.5 * angles[2]), sy = std::sin(0.5 * angles[2]);
  q[0] = cr * cp * cy + sr * sp * sy;
  q[1] = sr * cp * cy - cr * sp * sy;
  q[2] = cr * sp * cy + sr * cp * sy;
  q[3] = cr * cp * sy - sr * sp * cy;
}

void multiply(const double* a, const double* b, double* out) {
  out[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
  out[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
  out[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
  out[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
}

// `v` in the axes that q turns the world to.
void to_local(const double* q, const double* v, double* out) {
  const double pure[4] = {0, v[0], v[1], v[2]};
  const double inverse[4] = {q[0], -q[1], -q[2], -q[3]};
  double half[4], turned[4];
  multiply(inverse, pure, half);
  multiply(half, q, turned);
  std::copy(turned + 1, turned + 4, out);
}

void draw_gains(const ResetSpec& spec, uint64_t seed, uint64_t tick, u32 environment,
                double* gains) {
  const RandomSource source = random_source(seed, kStreamGainRandomisation, environment, tick);
  for (u32 i = 0; i < 2; ++i) {
    gains[i] = spec.randomise_gains ? spec.gain_low + (spec.gain_high - spec.gain_low) *
                                                          unit_float(random_u32(source, i))
                                    : 1.0;
  }
}

}  // namespace

int gain_draws(const ResetSpec& spec) { return spec.randomise_gains ? 2 : 0; }

int motion_start_draws(const MotionResetSpec& noise) {
  return 6 + 6 + static_cast<int>(noise.qpos_address.size());
}

void draw_start(const ResetSpec& spec, uint64_t seed, uint64_t tick, int env, double* qpos,
                double* qvel, double* gains) {
  const u32 environment = static_cast<u32>(env);
  const RandomSource source = random_source(seed, kStreamReset, environment, tick);
  const int nq = static_cast<int>(spec.qpos.size());
  const int first_q = spec.has_free_root ? 7 : 0;
  const int first_v = spec.has_free_root ? 6 : 0;
  std::copy(spec.qpos.begin(), spec.qpos.end(), qpos);
  std::fill(qvel, qvel + spec.nv, 0.0);
  if (spec.has_free_root) {
    qpos[0] += symmetric(source, 0, spec.root_xy);
    qpos[1] += symmetric(source, 1, spec.root_xy);
    turn_root(symmetric(source, 2, spec.root_yaw), qpos + 3);
    for (u32 i = 0; i < 6; ++i) qvel[i] = symmetric(source, 3 + i, spec.root_velocity);
  }
  for (int i = first_q; i < nq; ++i) {
    qpos[i] += symmetric(source, kJointPositionDraw + u32(i - first_q), spec.joint_position);
  }
  for (int i = first_v; i < spec.nv; ++i) {
    qvel[i] = symmetric(source, kJointVelocityDraw + u32(i - first_v), spec.joint_velocity);
  }
  draw_gains(spec, seed, tick, environment, gains);
}

void draw_motion_start(const ResetSpec& spec, const MotionResetSpec& noise,
                       const MotionView& motion, int frame, uint64_t seed, uint64_t tick, int env,
                       double* qpos, double* qvel, double* gains) {
  const u32 environment = static_cast<u32>(env);
  const RandomSource source = random_source(seed, kStreamReset, environment, tick);
  const float* position = motion_body(motion, motion.body_position, frame, 0, 3);
  const float* quaternion = motion_body(motion, motion.body_quaternion, frame, 0, 4);
  const float* linear = motion_body(motion, motion.body_linear_velocity, frame, 0, 3);
  const float* angular = motion_body(motion, motion.body_angular_velocity, frame, 0, 3);
  double pose[6], velocity[6];
  for (u32 i = 0; i < 6; ++i) {
    pose[i] = symmetric(source, kRootPoseDraw + i, noise.root_pose[i]);
    velocity[i] = symmetric(source, kRootVelocityDraw + i, noise.root_velocity[i]) +
                  (i < 3 ? linear[i] : angular[i - 3]);
  }
  std::copy(spec.qpos.begin(), spec.qpos.end(), qpos);
  std::fill(qvel, qvel + spec.nv, 0.0);
  for (int i = 0; i < 3; ++i) qpos[i] = position[i] + pose[i];
  const double reference[4] = {quaternion[0], quaternion[1], quaternion[2], quaternion[3]};
  double turn[4];
  quaternion_of(pose + 3, turn);
  multiply(turn, reference, qpos + 3);
  std::copy(velocity, velocity + 3, qvel);
  to_local(qpos + 3, velocity + 3, qvel + 3);
  const float* joint_position = motion_joints(motion, motion.joint_position, frame);
  const float* joint_velocity = motion_joints(motion, motion.joint_velocity, frame);
  for (size_t j = 0; j < noise.qpos_address.size(); ++j) {
    const double drawn =
        joint_position[j] + symmetric(source, kJointPositionDraw + u32(j), noise.joint_position);
    qpos[noise.qpos_address[j]] = std::clamp(drawn, noise.joint_lower[j], noise.joint_upper[j]);
    qvel[noise.dof_address[j]] = joint_velocity[j];
  }
  draw_gains(spec, seed, tick, environment, gains);
}

}  // namespace millrace

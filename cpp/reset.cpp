#include "reset.h"

#include <algorithm>
#include <cmath>

#include "philox.h"

namespace millrace {

namespace {

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

}  // namespace

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
  const RandomSource gain_source = random_source(seed, kStreamGainRandomisation, environment, tick);
  for (u32 i = 0; i < 2; ++i) {
    gains[i] = spec.randomise_gains ? spec.gain_low + (spec.gain_high - spec.gain_low) *
                                                          unit_float(random_u32(gain_source, i))
                                    : 1.0;
  }
}

}  // namespace millrace

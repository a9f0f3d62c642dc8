// Tests for motion_terms.h: every term of motion tracking against a double-precision reference
// written here with rotation matrices, on a rollout and on random states.
#include "motion_terms.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "motion_term_table.h"
#include "run_fixture.h"
#include "sim_parts.h"
#include "terms.h"

namespace millrace {
namespace {

constexpr int kBodies = 14, kJoints = 29, kAnchor = 7;
constexpr int kHandsAndFeet[] = {3, 6, 10, 13};

using Vector = std::array<double, 3>;
using Quaternion4 = std::array<double, 4>;
using Matrix = std::array<std::array<double, 3>, 3>;

Matrix matrix_of(Quaternion4 q) {
  const double n = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (double& c : q) c /= n;
  const auto [w, x, y, z] = q;
  return {{{w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)},
           {2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)},
           {2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z}}};
}

Matrix times(const Matrix& a, const Matrix& b) {
  Matrix c = {};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      for (size_t k = 0; k < 3; ++k) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

Matrix transposed(const Matrix& a) {
  Matrix c = {};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) c[i][j] = a[j][i];
  }
  return c;
}

Vector times(const Matrix& a, const Vector& v) {
  Vector c = {};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) c[i] += a[i][j] * v[j];
  }
  return c;
}

Vector minus(const Vector& a, const Vector& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }

double square(const Vector& v) { return v[0] * v[0] + v[1] * v[1] + v[2] * v[2]; }

// The angle of a rotation, from its sine and its cosine.
double angle_of(const Matrix& r) {
  const double sine = std::sqrt(square({r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1]}));
  return std::atan2(sine, r[0][0] + r[1][1] + r[2][2] - 1);
}

double angle_between(const Matrix& a, const Matrix& b) { return angle_of(times(transposed(a), b)); }

// Robot and reference of one environment, in doubles.
struct Sample {
  std::vector<Vector> p, v, w, ref_p, ref_v, ref_w;
  std::vector<Matrix> r, ref_r;
  std::vector<double> q, dq, ref_q, ref_dq, action, last_action;
  const TermConstants& constants;

  Sample(const StateView& state, const TermConstants& c, int env) : constants(c) {
    const int frame = counter_of(state.counter[kFrame], env);
    const MotionView& motion = state.motion;
    for (int body = 0; body < kBodies; ++body) {
      const auto robot = [&](SimField field) {
        return Vector{component(state.sim[field], env, 3 * body),
                      component(state.sim[field], env, 3 * body + 1),
                      component(state.sim[field], env, 3 * body + 2)};
      };
      const auto reference = [&](const float* array) {
        const float* at = array + (frame * kBodies + body) * 3;
        return Vector{at[0], at[1], at[2]};
      };
      p.push_back(robot(kBodyPosition)), ref_p.push_back(reference(motion.body_position));
      v.push_back(robot(kBodyLinearVelocity));
      ref_v.push_back(reference(motion.body_linear_velocity));
      w.push_back(robot(kBodyAngularVelocity));
      ref_w.push_back(reference(motion.body_angular_velocity));
      Quaternion4 mine, wanted;
      for (int i = 0; i < 4; ++i) {
        mine[size_t(i)] = component(state.sim[kBodyQuaternion], env, 4 * body + i);
        wanted[size_t(i)] = motion.body_quaternion[(frame * kBodies + body) * 4 + i];
      }
      r.push_back(matrix_of(mine)), ref_r.push_back(matrix_of(wanted));
    }
    for (int j = 0; j < kJoints; ++j) {
      q.push_back(component(state.sim[kJointPosition], env, j));
      dq.push_back(component(state.sim[kJointVelocity], env, j));
      ref_q.push_back(motion.joint_position[frame * kJoints + j]);
      ref_dq.push_back(motion.joint_velocity[frame * kJoints + j]);
      action.push_back(component(state.episode[kAction], env, j));
      last_action.push_back(component(state.episode[kLastAction], env, j));
    }
  }

  // tasks.md: D = yaw-only part of (robot anchor x ref anchor^-1).
  Matrix yaw_turn() const {
    const Matrix d = times(r[kAnchor], transposed(ref_r[kAnchor]));
    const double yaw = std::atan2(d[1][0], d[0][0]);
    return {{{std::cos(yaw), -std::sin(yaw), 0}, {std::sin(yaw), std::cos(yaw), 0}, {0, 0, 1}}};
  }
  Vector target(size_t body) const {
    Vector at = times(yaw_turn(), minus(ref_p[body], ref_p[kAnchor]));
    at[0] += p[kAnchor][0], at[1] += p[kAnchor][1], at[2] += ref_p[kAnchor][2];
    return at;
  }
};

bool is_hand_or_foot(size_t body) {
  for (const int b : kHandsAndFeet) {
    if (body == size_t(b)) return true;
  }
  return false;
}

template <typename Function>
double mean_over(size_t count, Function of) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += of(i);
  return sum / double(count);
}

double reference_reward(int term, const Sample& s) {
  const auto kernel = [](double deviation_square, double scale) {
    return std::exp(-deviation_square / (scale * scale));
  };
  const auto sq = [](double x) { return x * x; };
  switch (term) {
    case kRewardMotionRootPosition:
      return kernel(square(minus(s.ref_p[kAnchor], s.p[kAnchor])), .3);
    case kRewardMotionRootOrientation:
      return kernel(sq(angle_between(s.ref_r[kAnchor], s.r[kAnchor])), .4);
    case kRewardMotionBodyPosition:
      return kernel(
          mean_over(kBodies, [&](size_t b) { return square(minus(s.target(b), s.p[b])); }), .3);
    case kRewardMotionBodyOrientation:
      return kernel(mean_over(kBodies,
                              [&](size_t b) {
                                return sq(angle_between(times(s.yaw_turn(), s.ref_r[b]), s.r[b]));
                              }),
                    .4);
    case kRewardMotionBodyLinearVelocity:
      return kernel(mean_over(kBodies, [&](size_t b) { return square(minus(s.ref_v[b], s.v[b])); }),
                    1);
    case kRewardMotionBodyAngularVelocity:
      return kernel(mean_over(kBodies, [&](size_t b) { return square(minus(s.ref_w[b], s.w[b])); }),
                    3.14);
    case kRewardMotionJointPosition:
      return kernel(mean_over(kJoints, [&](size_t j) { return sq(s.ref_q[j] - s.q[j]); }), .2);
    case kRewardMotionJointVelocity:
      return kernel(mean_over(kJoints, [&](size_t j) { return sq(s.ref_dq[j] - s.dq[j]); }), 1);
    case kRewardActionRateL2:
      return kJoints *
             mean_over(kJoints, [&](size_t j) { return sq(s.action[j] - s.last_action[j]); });
    case kRewardJointLimit:
      return kJoints * mean_over(kJoints, [&](size_t j) {
               const double low = s.constants.joint_lower[j], high = s.constants.joint_upper[j];
               return s.q[j] < low ? sq(low - s.q[j]) : s.q[j] > high ? sq(s.q[j] - high) : 0;
             });
    case kRewardUndesiredContacts: {
      double count = 0;
      for (size_t b = 0; b < kBodies; ++b) {
        count += !is_hand_or_foot(b) && float(s.p[b][2]) < .05f ? 1 : 0;
      }
      return count;
    }
  }
  ADD_FAILURE() << "no reference for reward " << term;
  return 0;
}

double reference_observation(int term, const Sample& s, size_t i) {
  const Matrix to_anchor = transposed(s.r[kAnchor]);
  switch (term) {
    case kObserveMotionJointPosition:
      return s.ref_q[i];
    case kObserveMotionJointVelocity:
      return s.ref_dq[i];
    case kObserveAnchorPosition:
      return times(to_anchor, minus(s.ref_p[kAnchor], s.p[kAnchor]))[i];
    case kObserveAnchorOrientation:  // R00, R01, R10, R11, R20, R21
      return times(to_anchor, s.ref_r[kAnchor])[i / 2][i % 2];
    case kObserveBodyPosition:
      return times(to_anchor, minus(s.p[i / 3], s.p[kAnchor]))[i % 3];
    case kObserveBodyOrientation:
      return times(to_anchor, s.r[i / 6])[i % 6 / 2][i % 2];
  }
  ADD_FAILURE() << "no reference for observation " << term;
  return 0;
}

bool reference_termination(int term, const Sample& s, int frame, const int* clip_end) {
  const auto far = [](double a, double b, double limit) { return std::abs(a - b) > limit; };
  switch (term) {
    case kTerminateAnchorHeight:
      return far(s.ref_p[kAnchor][2], s.p[kAnchor][2], .5);
    case kTerminateAnchorTilt:
      return far(-s.ref_r[kAnchor][2][2], -s.r[kAnchor][2][2], .8);
    case kTerminateEndEffectorHeight:
      for (const int b : kHandsAndFeet) {
        if (far(s.target(size_t(b))[2], s.p[size_t(b)][2], .5)) return true;
      }
      return false;
    case kTerminateClipEnd:
      return frame == clip_end[frame] - 1;
  }
  ADD_FAILURE() << "no reference for termination " << term;
  return false;
}

int width_of(const TermInfo& info) {
  switch (info.dim) {
    case kPerJoint:
      return kJoints;
    case kThreePerBody:
      return 3 * kBodies;
    case kSixPerBody:
      return 6 * kBodies;
  }
  return info.dim;
}

// `size` of the numbers in the state, where they are larger than 1.
void check_terms(const TermConstants& constants, const StateView& state, int env, double size = 1) {
  const Sample sample(state, constants, env);
  const int frame = counter_of(state.counter[kFrame], env);
  const auto expect_close = [&](double actual, double expected, const char* name) {
    EXPECT_LE(std::abs(actual - expected), 1e-5 * std::max(size, std::abs(expected)))
        << name << ": " << actual << " instead of " << expected;
  };
  for (const TermInfo& info : motion_term_table()) {
    TermParams params = {};
    for (size_t i = 0; i < info.parameters.size() && i < kMaxTermParams; ++i) {
      params.value[i] = static_cast<float>(info.parameters[i].default_value);
    }
    if (info.kind == TermKind::kReward) {
      expect_close(reward_term(info.id, params, constants, state, env),
                   reference_reward(info.id, sample), info.name);
    } else if (info.kind == TermKind::kObservation) {
      for (int i = 0; i < width_of(info); ++i) {
        expect_close(observation_term(info.id, constants, state, env, i),
                     reference_observation(info.id, sample, size_t(i)), info.name);
      }
    } else if (info.kind == TermKind::kTermination) {
      EXPECT_EQ(termination_term(info.id, params, constants, state, env, 500),
                reference_termination(info.id, sample, frame, state.motion.clip_end))
          << info.name;
    }
  }
}

TEST(MotionTerms, AgreeWithTheReferenceOnARollout) {
  constexpr int kEnvs = 10;
  SimParts parts(motion_config(), kEnvs, 2, 5);
  UpdateStep& update = *parts.update;
  update.start_episodes(*parts.physics, true);
  std::vector<float> rows(size_t(kEnvs * parts.task->layout.width()));
  int ended = 0;
  for (uint64_t tick = 0; tick < 100; ++tick) {
    for (int i = 0; i < kEnvs * kJoints; ++i) {
      const RandomSource source = random_source(1, kStreamExploration, u32(i), tick);
      update.actions()[i] = 0.2f * random_normal(source, 0);
    }
    if (update.push_pending()) {
      parts.physics->apply_velocity_change(update.push_mask(), update.push_velocity());
    }
    parts.physics->step(update.actions(), tick);
    for (int env = 0; env < kEnvs; ++env) {
      check_terms(parts.task->params.constants, update.state(), env);
    }
    update.update(tick, 0, kEnvs, rows.data());
    ended += update.reset(tick, *parts.physics);
  }
  EXPECT_GT(ended, 0);
}

// One environment and a reference of three frames, all drawn anew each time.
struct RandomPair {
  std::mt19937 generator{12};
  std::vector<float> robot[kSimFieldCount], action, last_action, reference[6];
  std::vector<int> clip_end = {1, 3, 3};
  int frame = 0;
  StateView state = {};

  float uniform(float half_width) {
    return std::uniform_real_distribution<float>(-half_width, half_width)(generator);
  }
  void fill(std::vector<float>& values, int count, float size) {
    values.resize(size_t(count));
    for (float& value : values) value = uniform(size);
  }
  // Near `turn` = 0 the unit quaternion.
  void fill_quaternions(std::vector<float>& values, int count, float turn) {
    values.clear();
    for (int i = 0; i < count; ++i) {
      const float q[4] = {turn > 1 ? uniform(1) : 1, uniform(turn), uniform(turn), uniform(turn)};
      const float norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
      for (const float c : q) values.push_back(c / norm);
    }
  }
  void draw(float size, float turn) {
    for (const SimField field : {kBodyPosition, kBodyLinearVelocity, kBodyAngularVelocity}) {
      set(field, 3 * kBodies, size);
    }
    set(kJointPosition, kJoints, size);
    set(kJointVelocity, kJoints, size);
    fill_quaternions(robot[kBodyQuaternion], kBodies, turn);
    state.sim[kBodyQuaternion] = {robot[kBodyQuaternion].data(), 4 * kBodies, 1, 4 * kBodies};
    fill(action, kJoints, size), fill(last_action, kJoints, size);
    state.episode[kAction] = {action.data(), kJoints, 1, kJoints};
    state.episode[kLastAction] = {last_action.data(), kJoints, 1, kJoints};
    frame = std::uniform_int_distribution<int>(0, 2)(generator);
    state.counter[kFrame] = {&frame, 1};
    for (int array : {0, 1}) fill(reference[array], 3 * kJoints, size);
    for (int array : {2, 4, 5}) fill(reference[array], 3 * 3 * kBodies, size);
    fill_quaternions(reference[3], 3 * kBodies, turn);
    state.motion = {reference[0].data(),
                    reference[1].data(),
                    reference[2].data(),
                    reference[3].data(),
                    reference[4].data(),
                    reference[5].data(),
                    clip_end.data(),
                    3,
                    kJoints,
                    kBodies};
  }
  void set(SimField field, int dim, float size) {
    fill(robot[field], dim, size);
    state.sim[field] = {robot[field].data(), dim, 1, dim};
  }
};

TermConstants random_constants(RandomPair& pair) {
  TermConstants constants = {};
  constants.anchor_body = kAnchor;
  for (const int body : kHandsAndFeet) constants.is_end_effector[body] = 1;
  for (int j = 0; j < kJoints; ++j) {
    constants.joint_lower[j] = -0.5f + pair.uniform(0.3f);
    constants.joint_upper[j] = 0.5f + pair.uniform(0.3f);
  }
  return constants;
}

TEST(MotionTerms, AgreeWithTheReferenceOnRandomStates) {
  RandomPair pair;
  for (int i = 0; i < 200; ++i) {
    const float size = i % 4 == 0 ? 0.02f : i % 4 == 1 ? 0.3f : i % 4 == 2 ? 1.0f : 30.0f;
    const float turn = i % 3 == 0 ? 1e-3f : i % 3 == 1 ? 0.3f : 2.0f;
    pair.draw(size, turn);
    check_terms(random_constants(pair), pair.state, 0, std::max(1.0, double(size)));
  }
}

// Where a cosine would have lost small angles: half a milliradian is seen.
TEST(MotionTerms, SmallAnglesAreSeen) {
  for (const double angle : {0.0, 5e-4, 0.01, 1.0, 1.05, 3.0, 3.14159}) {
    const Quaternion a = {1, 0, 0, 0};
    const Quaternion b = {float(std::cos(angle / 2)), 0, float(std::sin(angle / 2)), 0};
    EXPECT_NEAR(std::sqrt(double(squared_angle(a, b))), angle, 1e-6 + 1e-6 * angle);
    const Quaternion other_sign = {-b.w, 0, -b.y, 0};
    EXPECT_NEAR(std::sqrt(double(squared_angle(a, other_sign))), angle, 1e-6 + 1e-6 * angle);
  }
}

// The robot becomes the reference, turned and moved as a whole; then each body by `noise`.
void turn_robot(RandomPair& pair, double yaw, float noise) {
  const Matrix turn = {
      {{std::cos(yaw), -std::sin(yaw), 0}, {std::sin(yaw), std::cos(yaw), 0}, {0, 0, 1}}};
  const Quaternion about_z = {float(std::cos(yaw / 2)), 0, 0, float(std::sin(yaw / 2))};
  for (int body = 0; body < kBodies; ++body) {
    const float* p = motion_body(pair.state.motion, pair.reference[2].data(), pair.frame, body, 3);
    const float* q = motion_body(pair.state.motion, pair.reference[3].data(), pair.frame, body, 4);
    const Vector moved = times(turn, Vector{p[0], p[1], p[2]});
    std::vector<float> small;
    pair.fill_quaternions(small, 1, noise);
    const Quaternion turned =
        product(quaternion_at(small.data()), product(about_z, quaternion_at(q)));
    const float values[4] = {turned.w, turned.x, turned.y, turned.z};
    for (int i = 0; i < 3; ++i) {
      component(pair.state.sim[kBodyPosition], 0, 3 * body + i) =
          float(moved[size_t(i)]) + (i < 2 ? 5.0f : 0.0f) + pair.uniform(noise);
    }
    for (int i = 0; i < 4; ++i) {
      component(pair.state.sim[kBodyQuaternion], 0, 4 * body + i) = values[i];
    }
  }
}

TEST(MotionTerms, HeadingAndPlaceAreTakenOutOfRelativeTerms) {
  RandomPair pair;
  pair.draw(0.5f, 0.3f);
  turn_robot(pair, 2.5, 0.0f);
  EXPECT_NEAR(motion_body_positions(pair.state, 0, kAnchor, {0.3f}), 1.0f, 1e-4f);
  EXPECT_NEAR(motion_body_orientations(pair.state, 0, kAnchor, {0.4f}), 1.0f, 1e-4f);
  EXPECT_LT(motion_root_position(pair.state, 0, kAnchor, {0.3f}), 1e-6f);
  EXPECT_LT(motion_root_orientation(pair.state, 0, kAnchor, {0.4f}), 1e-6f);
}

// Near the reference the relative rewards are neither 0 nor 1: nothing hides an error.
TEST(MotionTerms, AgreeWithTheReferenceAtEveryHeading) {
  RandomPair pair;
  const TermConstants constants = random_constants(pair);
  for (int i = 0; i < 63; ++i) {
    pair.draw(0.5f, 0.3f);
    turn_robot(pair, -3.1 + 0.1 * i, 0.05f);
    check_terms(constants, pair.state, 0, 5);
    const float reward = motion_body_orientations(pair.state, 0, kAnchor, {0.4f});
    EXPECT_TRUE(reward > 0.1f && reward < 0.99f) << reward;
  }
}

}  // namespace
}  // namespace millrace

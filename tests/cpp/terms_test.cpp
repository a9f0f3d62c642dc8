// Tests for terms.h: every term against a double-precision reference written here from the task's
// formulas, on plausible and on extreme states.
#include "terms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "motion_term_table.h"
#include "physics_mujoco.h"
#include "resources.h"
#include "task_fixture.h"
#include "update.h"

namespace millrace {
namespace {

constexpr double kPi = 3.14159265358979323846;

using Vector = std::vector<double>;

// One environment's state, read into doubles.
struct Sample {
  Vector gravity, gyro, velocity, joints, joint_velocity, root, feet, foot_quaternion, contact;
  Vector body_quaternion, body_rate, action, last_action, command, phase, air_time;

  static Vector read(FieldView view, int env) {
    Vector values;
    for (int i = 0; i < view.dim; ++i) values.push_back(component(view, env, i));
    return values;
  }

  Sample(const StateView& state, int env)
      : gravity(read(state.sim[kProjectedGravity], env)),
        gyro(read(state.sim[kGyro], env)),
        velocity(read(state.sim[kLocalLinearVelocity], env)),
        joints(read(state.sim[kJointPosition], env)),
        joint_velocity(read(state.sim[kJointVelocity], env)),
        root(read(state.sim[kRootPosition], env)),
        feet(read(state.sim[kFootPosition], env)),
        foot_quaternion(read(state.sim[kFootQuaternion], env)),
        contact(read(state.sim[kFootContact], env)),
        body_quaternion(read(state.sim[kBodyQuaternion], env)),
        body_rate(read(state.sim[kBodyAngularVelocity], env)),
        action(read(state.episode[kAction], env)),
        last_action(read(state.episode[kLastAction], env)),
        command(read(state.episode[kCommand], env)),
        phase(read(state.episode[kGaitPhase], env)),
        air_time(read(state.episode[kFootAirTime], env)) {}
};

double sq(double x) { return x * x; }

// tasks.md: x = (fmod(phase + pi, 2 pi) - pi + pi) / 2 pi; b(t) = t^3 + 3 t^2 (1 - t);
// h = .09 b(2x) for x <= .5, else .09 (1 - b(2x - 1)).
double foot_height(double phase) {
  const auto b = [](double t) { return t * t * t + 3 * t * t * (1 - t); };
  const double x = std::fmod(phase + kPi, 2 * kPi) / (2 * kPi);
  return x <= 0.5 ? 0.09 * b(2 * x) : 0.09 * (1 - b(2 * x - 1));
}

double pose_cost(const Sample& s, const SimModel& model, const Vector& weights) {
  double sum = 0;
  for (size_t j = 0; j < weights.size(); ++j) {
    sum += weights[j] * sq(s.joints[j] - static_cast<float>(model.default_joint_position[j]));
  }
  return sum;
}

bool moving(const Sample& s) { return std::hypot(s.command[0], s.command[1]) >= 0.1; }

double reference_reward(int term, const Sample& s, const SimModel& model) {
  Vector pose_weights;
  for (int leg = 0; leg < 2; ++leg) {
    for (double w : {.01, 1.0, 5.0, .01, 5.0, 5.0}) pose_weights.push_back(w);
  }
  Vector upper_weights(12, 0.0);
  for (int j = 0; j < 17; ++j) pose_weights.push_back(50), upper_weights.push_back(1);
  switch (term) {
    case kRewardTrackingLinVel:
      return std::exp(-(sq(s.command[0] - s.velocity[0]) + sq(s.command[1] - s.velocity[1])) / .25);
    case kRewardTrackingAngVel:
      return std::exp(-sq(s.command[2] - s.gyro[2]) / .25);
    case kRewardPenaltyAngVelXy:
      return sq(s.gyro[0]) + sq(s.gyro[1]);
    case kRewardPenaltyOrientation:
      return sq(s.gravity[0]) + sq(s.gravity[1]);
    case kRewardPenaltyActionRate: {
      double sum = 0;
      for (size_t i = 0; i < s.action.size(); ++i) sum += sq(s.action[i] - s.last_action[i]);
      return sum;
    }
    case kRewardPose:
      return pose_cost(s, model, pose_weights);
    case kRewardPenaltyFeetOri:
      return sq(s.foot_quaternion[1]) + sq(s.foot_quaternion[2]) + sq(s.foot_quaternion[5]) +
             sq(s.foot_quaternion[6]);
    case kRewardFeetPhase:
      return std::exp(
          -(sq(s.feet[2] - foot_height(s.phase[0])) + sq(s.feet[5] - foot_height(s.phase[1]))) /
          .04);
    case kRewardAlive:
      return 1;
    case kRewardForwardProgress:
      return std::min(std::max(s.velocity[0], 0.0), std::max(s.command[0], 0.0));
    case kRewardUnderSpeed:
      return std::max(0.0,
                      std::abs(s.command[0]) - (s.command[0] < 0 ? -s.velocity[0] : s.velocity[0]));
    case kRewardLinVelZ:
      return sq(s.velocity[2]);
    case kRewardBaseHeight:
      return sq(s.root[2] - .754);
    case kRewardUpperBodyPose:
      return pose_cost(s, model, upper_weights);
    case kRewardPenaltyCloseFeetXy: {
      const double d = std::hypot(s.feet[0] - s.feet[3], s.feet[1] - s.feet[4]);
      return d < .15 ? sq(d - .15) : 0;
    }
    case kRewardFeetPhaseContrast:
      return std::exp(
          -sq((s.feet[2] - s.feet[5]) - (foot_height(s.phase[0]) - foot_height(s.phase[1]))) / .04);
    case kRewardFeetPhaseContact: {
      double agree = 0;
      for (size_t f = 0; f < 2; ++f) {
        agree += (foot_height(s.phase[f]) < .01) == (s.contact[f] == 1) ? .5 : 0;
      }
      return agree;
    }
    case kRewardFeetDoubleStance:
      return s.contact[0] == 1 && s.contact[1] == 1 && moving(s) ? 1 : 0;
    case kRewardFeetAirTime: {
      double sum = 0;
      for (size_t f = 0; f < 2; ++f) {
        if (s.contact[f] == 1 && s.air_time[f] > 0) sum += s.air_time[f] - .4;
      }
      return moving(s) ? sum : 0;
    }
    case kRewardUpright:
      return (1 + 1 - 2 * (sq(s.body_quaternion[1]) + sq(s.body_quaternion[2]))) / 2;
  }
  ADD_FAILURE() << "no reference for reward " << term;
  return 0;
}

double reference_observation(int term, const Sample& s, const SimModel& model, size_t i) {
  switch (term) {
    case kObserveGyro:
      return s.gyro[i];
    case kObserveProjectedGravity:
      return s.gravity[i];
    case kObserveJointPosition:
      return s.joints[i] - model.default_joint_position[i];
    case kObserveJointVelocity:
      return s.joint_velocity[i];
    case kObserveLastAction:
      return s.action[i];
    case kObserveCommand:
      return s.command[i];
    case kObserveGaitPhase:
      return s.phase[i];
    case kObserveLocalLinearVelocity:
      return s.velocity[i];
    case kObservePoleDirection: {
      const Vector& q = s.body_quaternion;
      return i == 0 ? q[0] * q[0] - q[1] * q[1] - q[2] * q[2] + q[3] * q[3]
                    : 2 * (q[1] * q[3] + q[0] * q[2]);
    }
    case kObservePoleVelocity:
      return s.body_rate[1];
  }
  ADD_FAILURE() << "no reference for observation " << term;
  return 0;
}

bool reference_termination(int term, const Sample& s, int step, int max_steps) {
  switch (term) {
    case kTerminateTilt:
      return std::acos(std::min(1.0, std::max(-1.0, -s.gravity[2]))) > 65 * kPi / 180;
    case kTerminateLowRoot:
      return s.root[2] < .3;
    case kTerminateTimeOut:
      return step >= max_steps;
  }
  return false;
}

void expect_close(double actual, double expected, const std::string& what) {
  EXPECT_LE(std::abs(actual - expected), 1e-5 * std::max(1.0, std::abs(expected)))
      << what << ": " << actual << " instead of " << expected;
}

TermParams defaults_of(const TermInfo& info) {
  TermParams params = {};
  for (size_t i = 0; i < info.parameters.size() && i < kMaxTermParams; ++i) {
    params.value[i] = static_cast<float>(info.parameters[i].default_value);
  }
  return params;
}

int observation_width(const TermInfo& info) {
  return info.dim == kPerJoint || info.dim == kPerAction ? 29 : info.dim;
}

// motion_terms_test.cpp has their references.
bool needs_a_motion(const TermInfo& info) {
  for (const TermInfo& row : motion_term_table()) {
    if (row.kind == info.kind && row.id == info.id) return true;
  }
  return false;
}

void check_environment(const UpdateParams& p, const StateView& state, const SimModel& model,
                       int env) {
  const Sample sample(state, env);
  for (const TermInfo& info : term_table()) {
    if (needs_a_motion(info)) continue;
    const TermParams params = defaults_of(info);
    const std::string what = std::string(to_string(info.kind)) + " " + info.name;
    if (info.kind == TermKind::kReward) {
      expect_close(reward_term(info.id, params, p.constants, state, env),
                   reference_reward(info.id, sample, model), what);
    } else if (info.kind == TermKind::kObservation) {
      for (int i = 0; i < observation_width(info); ++i) {
        expect_close(observation_term(info.id, p.constants, state, env, i),
                     reference_observation(info.id, sample, model, static_cast<size_t>(i)), what);
      }
    } else if (info.kind == TermKind::kTermination) {
      const int step = counter_of(state.counter[kStep], env);
      EXPECT_EQ(termination_term(info.id, params, p.constants, state, env, p.max_steps),
                reference_termination(info.id, sample, step, p.max_steps))
          << what;
    }
  }
}

// Must-show 5: states that a random policy visits, 1,000 of them, with every part of the task on.
TEST(Terms, AgreeWithTheReferenceOnARollout) {
  const nlohmann::json config = {{"task", "g1_walk_flat"}};
  constexpr int kEnvs = 10;
  WorkerPool pool(2);
  SimSpec spec = sim_spec_of(config, resources());
  spec.body_names = {"torso_link"};  // stands in for the pole
  PhysicsMujoco physics(spec, kEnvs, pool);
  const Task task = make_task(config, physics.model());
  UpdateStep update(task, physics.state_view(), kEnvs, 21);
  update.start_episodes(physics, true);
  std::vector<float> rows(static_cast<size_t>(kEnvs * task.layout.width()));
  int ended = 0;
  for (uint64_t tick = 0; tick < 100; ++tick) {
    for (int i = 0; i < kEnvs * task.layout.action_dim; ++i) {
      const RandomSource source = random_source(1, kStreamExploration, static_cast<u32>(i), tick);
      update.actions()[i] = 0.5f * random_normal(source, 0);
    }
    if (update.push_pending()) {
      physics.apply_velocity_change(update.push_mask(), update.push_velocity());
    }
    physics.step(update.actions(), tick);
    for (int env = 0; env < kEnvs; ++env) {
      check_environment(task.params, update.state(), physics.model(), env);
    }
    update.update(tick, 0, kEnvs, rows.data());
    ended += update.reset(tick, physics);
  }
  EXPECT_GT(ended, 0);
  EXPECT_EQ(update.statistics().unstable_count(), 0u);
}

// Fills the update step's own fields of one environment at random.
void randomise_episode(const StateView& state, int env, uint64_t index, float size) {
  const RandomSource source = random_source(77, kStreamCommand, static_cast<u32>(env), index);
  u32 draw = 0;
  for (EpisodeField field : {kAction, kLastAction, kCommand}) {
    for (int i = 0; i < state.episode[field].dim; ++i) {
      component(state.episode[field], env, i) = size * random_uniform(source, draw++, -1, 1);
    }
  }
  for (int foot = 0; foot < 2; ++foot) {
    component(state.episode[kGaitPhase], env, foot) =
        random_uniform(source, draw++, 0.0f, 6.2831853f);
    component(state.episode[kFootAirTime], env, foot) = random_uniform(source, draw++, 0, 0.8f);
  }
}

TEST(Terms, AgreeWithTheReferenceOnRandomStates) {
  const SimModel model = g1_model();
  const Task task = make_task({{"task", "g1_walk_flat"}}, model);
  RandomSim sim(model, true, 4, 11);
  UpdateStep update(task, sim.state_view(), 4, 3);
  for (uint64_t tick = 0; tick < 50; ++tick) {
    for (int env = 0; env < 4; ++env) {
      sim.randomise(env, tick, 1.0f);
      randomise_episode(update.state(), env, tick, 1.0f);
      check_environment(task.params, update.state(), model, env);
    }
  }
}

TEST(Terms, AgreeWithTheReferenceOnExtremeStates) {
  const SimModel model = g1_model();
  const Task task = make_task({{"task", "g1_walk_flat"}}, model);
  RandomSim sim(model, true, 1, 12);
  UpdateStep update(task, sim.state_view(), 1, 3);
  for (uint64_t index = 0; index < 200; ++index) {
    const float size = index % 4 == 0   ? 0.0f
                       : index % 4 == 1 ? 5.0f
                       : index % 4 == 2 ? 35.0f
                                        : 1e3f;
    sim.randomise(0, index, size + 1e-6f);
    randomise_episode(update.state(), 0, index, size);
    sim.at(kProjectedGravity, 0, 2) = index % 2 ? 1.0000002f : -1.0000002f;  // rounding of a unit
    component(update.state().episode[kGaitPhase], 0, 0) = index % 3 ? 6.2831850f : 0.0f;
    counter_of(update.state().counter[kStep], 0) = 990 + static_cast<int>(index % 20);
    check_environment(task.params, update.state(), model, 0);
  }
}

TEST(Terms, GaitLiftsEachFootOnceInACycle) {
  EXPECT_NEAR(gait_height(3.14159265f, 0.09f), 0.0f, 1e-6f);
  EXPECT_NEAR(gait_height(0.0f, 0.09f), 0.09f, 1e-6f);
  EXPECT_NEAR(gait_height(1.5707963f, 0.09f), 0.045f, 1e-6f);
}

}  // namespace
}  // namespace millrace
